#include "cuda/ranks/ranks.h"

#include <cstdlib>
#include <map>
#include <type_traits>
#include <utility>

#include "cuda/device/device.h"
#include "cuda/ranks/device_ranks.h"
#include "cuda/ranks/launcher.h"
#include "cuda/ranks/roll_call.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// The launcher that these variables tell of.
Launcher launcher_of(const std::map<std::string, std::string>& variables) {
  forget_launcher();
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  const Launcher found = find_launcher();
  forget_launcher();
  for (const auto& [name, value] : variables) CHECK(std::getenv(name.c_str()) == nullptr);
  return found;
}

// A rank among so many, on machines of four, which carries nothing.
class FixedRanks : public Ranks {
 public:
  FixedRanks(int rank, int count) {
    rank_ = rank;
    count_ = count;
    local_ = rank % 4;
    machines_.clear();
    for (int r = 0; r < count; ++r) machines_.push_back("node0" + std::to_string(1 + r / 4));
  }
};

}  // namespace

TEST_CASE("launcher: the first variable that is set tells") {
  CHECK(launcher_of({}).name.empty());
  CHECK(launcher_of({}).count == 1);
  const Launcher open_mpi = launcher_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}, {"SLURM_STEP_NUM_TASKS", "1"}});
  CHECK(open_mpi.name == "mpirun");
  CHECK(open_mpi.count == 4);
  CHECK(open_mpi.rank == 2);
  CHECK(open_mpi.counts);
  const Launcher slurm = launcher_of({{"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_PROCID", "3"}});
  CHECK(slurm.name == "srun");
  CHECK(slurm.count == 16);
  CHECK(slurm.rank == 3);
  CHECK(launcher_of({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}).name == "mpiexec");
  CHECK(launcher_of({{"PMI_SIZE", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}}).name == "srun");
  const Launcher pmix = launcher_of({{"PMIX_RANK", "3"}});
  CHECK(pmix.count == 4);  // at least
  CHECK_FALSE(pmix.counts);
  CHECK(launcher_of({{"PMIX_RANK", "3"}, {"SLURM_STEP_NUM_TASKS", "16"}}).count == 16);
}

TEST_CASE("ranks: an error tells the rank and its step, once") {
  FixedRanks first(0, 8), other(5, 8);
  CHECK(other.machine_count() == 2);
  CHECK(first.as_told_here("no such key") == "no such key");
  CHECK(other.as_told_here("no such key") == "rank 5 on node02: no such key");
  for (Ranks* ranks : std::initializer_list<Ranks*>{&first, &other}) ranks->at("step 812");
  CHECK(first.as_told_here("disk full") == "rank 0 on node01: step 812: disk full");
  CHECK(other.as_told_here("step 812: the loss is nan") == "rank 5 on node02: step 812: the loss is nan");
}

// ---- The table of a device

namespace {

// Function number `bad` reports error 2; they are numbered in the order of DeviceTable. Another number: none does.
void spoil(DeviceTable& table, int bad) {
  int number = 0;
  const auto next = [&](auto& function) {
    if (number++ == bad) function = [](auto&&...) { return 2; };
  };
  next(table.make_id);
  next(table.join);
  next(table.begin_group);
  next(table.end_group);
  next(table.send);
  next(table.receive);
  next(table.all_gather);
  next(table.sum);
  next(table.from_first);
  next(table.state);
}

// Joined without an error, found to have failed later.
auto fails_later() {
  return [joined = false](int& state) mutable {
    state = std::exchange(joined, true) ? 2 : 0;
    return 0;
  };
}

// One of every exchange on cuda_emulated.
void exchange_all(Ranks& ranks) {
  ranks.at("step 812");
  const Tensor t = zeros({4}, Dtype::f64, Device::cuda_emulated);
  ranks.all_to_all({{}, {t}}, {{}, {t}});
  ranks.all_gather(t);
  ranks.sum(t);
  ranks.from_first(t);
  ranks.wait();
}

// The error of a table with a bad function.
std::string error_with(int bad, bool later = false) {
  int aborted = 0;
  const auto make = [&](Device, Ranks& carrier) {
    DeviceTable table = emulated_table(carrier);
    spoil(table, bad);
    if (later) table.state = fails_later();
    table.abort = [&aborted] {
      ++aborted;
      return 0;
    };
    table.text = [](int error) { return "error " + std::to_string(error); };
    return table;
  };
  const std::string error = message_of([&] {
    DeviceRanks ranks(std::make_unique<FixedRanks>(0, 2), make);
    exchange_all(ranks);
  });
  CHECK(aborted == (error == "no error" ? 0 : 1));
  return error;
}

}  // namespace

TEST_CASE("device ranks: an error of every function of the table is told, and ends the communicator") {
  const auto line = [](const char* call) {
    return std::string("NCCL: error 2 in ") + call + " of step 812; NCCL_DEBUG=INFO prints details";
  };
  CHECK(error_with(-1) == "no error");
  const char* const calls[] = {
      "make_id", "join", "all_to_all", "all_to_all", "all_to_all", "all_to_all", "all_gather", "sum", "from_first", "join"};
  for (int bad = 0; bad < 10; ++bad) {
    CAPTURE(bad);
    CHECK(error_with(bad) == line(calls[bad]));
  }
  CHECK(error_with(-1, true) == line("an exchange"));  // found later, while it runs
}

TEST_CASE("device ranks: each rank has a GPU of its own") {
  const FixedRanks ranks(0, 8);  // on two machines
  CHECK(about_gpus(ranks, {"4 a", "4 b", "4 c", "4 d", "4 a", "4 b", "4 c", "4 d"}).empty());
  CHECK(about_gpus(ranks, {"4 a", "4 b", "4 c", "4 d", "1 a", "1 b", "1 c", "1 d"}) ==
        "each rank on node02 sees one GPU only, so that NCCL misses NVLink: --gpus-per-node, not --gpus-per-task");
  CHECK(message_of([&] {
    about_gpus(ranks, {"4 a", "4 b", "4 c", "4 d", "2 a", "2 b", "2 a", "2 b"});
  }) == "device cuda: node02 has 2 GPUs for 4 ranks; mpirun --map-by ppr:2:node");
  CHECK(message_of([&] {
    about_gpus(ranks, {"1 a", "1 a", "1 a", "1 a", "1 a", "1 a", "1 a", "1 a"});
  }) == "device cuda: node01 has 1 GPU for 4 ranks; mpirun --map-by ppr:1:node");
}

TEST_CASE("device ranks: shares that are not equal") {
  DeviceRanks ranks(std::make_unique<FixedRanks>(0, 2));
  CHECK(message_of([&] { ranks.all_gather(zeros({3}, Dtype::f64, Device::cuda_emulated)); }) ==
        "ranks: 3 elements cannot be gathered in 2 equal shares");
}

// ---- The roll call of ranks that wait

namespace {

constexpr double kLimit = 300;

// The line of one of eight ranks; `waiting` have told so.
std::string line_of(int rank, const std::vector<std::pair<int, WaitNote>>& waiting) {
  const FixedRanks ranks(rank, 8);
  RollCall roll_call(ranks);
  for (const auto& [r, note] : waiting)
    if (r == rank) roll_call.told(note, 1000);
    else roll_call.heard(r, note);
  return roll_call.verdict(1000 + RollCall::kListen + 8 * RollCall::kNext, kLimit).value_or("nothing");
}

std::vector<std::pair<int, WaitNote>> all_but(const std::vector<int>& missing) {
  std::vector<std::pair<int, WaitNote>> waiting;
  for (int r = 0; r < 8; ++r)
    if (std::find(missing.begin(), missing.end(), r) == missing.end()) waiting.push_back({r, {true, 300, "step 812"}});
  return waiting;
}

}  // namespace

TEST_CASE("roll call: the ranks that do not answer are named") {
  CHECK(
      line_of(0, all_but({5})) == "rank 5 on node02 does not answer: the other 7 have waited for it for 300 s (rank_timeout) in step 812");
  CHECK(line_of(0, all_but({1, 5})) ==
        "rank 1 on node01, rank 5 on node02 do not answer: the other 6 have waited for them for 300 s (rank_timeout) in step 812");
  CHECK(line_of(0, all_but({1, 2, 3, 5, 6})) ==
        "rank 1 on node01, rank 2 on node01, rank 3 on node01 and 2 more do not answer: the other 3 have waited for them for 300 s "
        "(rank_timeout) in step 812");
  CHECK(line_of(7, {{7, {true, 300, ""}}}).ends_with("and 4 more do not answer: the other has waited for them for 300 s (rank_timeout)"));
}

TEST_CASE("roll call: all wait, and those that wait elsewhere are named") {
  auto waiting = all_but({});
  waiting[5].second = {true, 299, "step 811"};
  CHECK(line_of(0, waiting) == "all ranks wait, the longest 300 s: rank 5 on node02 in step 811, the others in step 812");
  CHECK(line_of(0, all_but({})) == "all ranks wait, the longest 300 s: all in step 812");
}

TEST_CASE("roll call: who tells, and when") {
  const FixedRanks ranks(2, 4);
  RollCall roll_call(ranks);
  CHECK_FALSE(roll_call.must_tell(299, kLimit));
  CHECK(roll_call.must_tell(300, kLimit));
  roll_call.heard(3, {true, 300, ""});
  CHECK(roll_call.must_tell(1, kLimit));  // another one asks
  roll_call.heard(3, {});
  CHECK_FALSE(roll_call.must_tell(1, kLimit));  // and takes its word back
  CHECK_FALSE(roll_call.verdict(1e9, kLimit));  // a rank that has not told says nothing
  roll_call.told({true, 300, ""}, 50);
  CHECK_FALSE(roll_call.must_tell(300, kLimit));  // once is enough
  CHECK_FALSE(roll_call.verdict(49 + RollCall::kListen, kLimit));
  CHECK(roll_call.verdict(50 + RollCall::kListen, kLimit));
  roll_call.heard(0, {true, 300, ""});  // the lower rank speaks first
  CHECK_FALSE(roll_call.verdict(50 + RollCall::kListen, kLimit));
  CHECK(roll_call.verdict(50 + RollCall::kListen + RollCall::kNext, kLimit));
  roll_call.took_back();
  CHECK_FALSE(roll_call.verdict(1e9, kLimit));
}
