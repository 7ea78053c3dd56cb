#include "cuda/ranks/ranks.h"

#include <cstdlib>
#include <map>
#include <utility>

#include "cuda/device/device.h"
#include "tests/ops/values.h"
#include "tests/thread_ranks.h"

using namespace ricci;

namespace {

// The launcher of these variables, without any others.
Launcher launcher_of(const std::map<std::string, std::string>& variables) {
  const auto forget = [] {
    for (const char* const name :
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"})
      ::unsetenv(name);
  };
  forget();
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  const Launcher found = find_launcher();
  forget();
  return found;
}

// One of some ranks, on machines of four, that gets these texts.
class FixedRanks : public Ranks {
 public:
  FixedRanks(int rank, int count, std::vector<std::string> texts = {}) : texts_(std::move(texts)) {
    rank_ = rank;
    count_ = count;
    local_ = rank % 4;
    machines_.clear();
    for (int r = 0; r < count; ++r) machines_.push_back("node0" + std::to_string(1 + r / 4));
  }

 private:
  void send_from(int rank, void* data, int64_t) override {  // first the length of a text, then the text
    const std::string& text = texts_[static_cast<size_t>(rank)];
    if (std::exchange(length_is_next_, !length_is_next_)) *static_cast<int64_t*>(data) = static_cast<int64_t>(text.size());
    else text.copy(static_cast<char*>(data), text.size());
  }
  std::vector<std::string> texts_;
  bool length_is_next_ = true;
};

std::vector<std::string> none(int count) { return std::vector<std::string>(static_cast<size_t>(count)); }

}  // namespace

TEST_CASE("launcher: the first variable that is set decides") {
  struct Row {
    std::map<std::string, std::string> variables;
    const char* name;
    int count, rank;
    bool counts;
  };
  // clang-format off
  for (const Row& r : {Row{{}, "", 1, 0, true}, {{{"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_PROCID", "3"}}, "srun", 16, 3, true},
           {{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}, {"SLURM_STEP_NUM_TASKS", "1"}}, "mpirun", 4, 2, true},
           {{{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}, "mpiexec", 2, 1, true},
           {{{"PMI_SIZE", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}}, "srun", 2, 0, true}, {{{"PMIX_RANK", "3"}}, "mpirun", 4, 3, false},
           {{{"PMIX_RANK", "3"}, {"SLURM_STEP_NUM_TASKS", "16"}}, "srun", 16, 3, true}}) {
    const Launcher found = launcher_of(r.variables);
    CAPTURE(r.count);
    CHECK(found.name == r.name);
    CHECK(found.count == r.count);
    CHECK(found.rank == r.rank);
    CHECK(found.counts == r.counts);
  }
  // clang-format on
}

TEST_CASE("ranks: an error names the rank and its step, once") {
  FixedRanks first(0, 8), other(5, 8);
  CHECK(other.machine_count() == 2);
  CHECK(first.with_rank("no such key") == "no such key");
  CHECK(other.with_rank("no such key") == "rank 5 on node02: no such key");
  for (Ranks* ranks : std::initializer_list<Ranks*>{&first, &other}) ranks->at("step 812");
  CHECK(first.with_rank("disk full") == "rank 0 on node01: step 812: disk full");
  CHECK(other.with_rank("step 812: the loss is nan") == "rank 5 on node02: step 812: the loss is nan");
}

TEST_CASE("ranks: those that do not answer are named") {
  FixedRanks ranks(0, 8);
  CHECK(ranks.describe_missing({2, 3, 5, 6, 7}) ==
        "rank 2 on node01, rank 3 on node01, rank 5 on node02 and 2 more do not answer: the other 3 have waited for them for 300 s "
        "(rank_timeout)");
  ranks.at("step 812");
  CHECK(ranks.describe_missing({5}) ==
        "rank 5 on node02 does not answer: the other 7 have waited for it for 300 s (rank_timeout) in step 812");
  CHECK(ranks.describe_missing({1, 5}) ==
        "rank 1 on node01, rank 5 on node02 do not answer: the other 6 have waited for them for 300 s (rank_timeout) in step 812");
  ranks.set_timeout(2);
  CHECK(FixedRanks(1, 2).describe_missing({0}) == "rank 0 on node01 does not answer: the other has waited for it for 300 s (rank_timeout)");
}

TEST_CASE("ranks: each rank of a machine has its own GPU") {
  const auto error = [](int rank, const std::vector<std::string>& gpus) {
    FixedRanks ranks(rank, 8, gpus);
    return message_of([&] { check_gpus(ranks); });
  };
  const std::vector<std::string> all = {"a", "b", "c", "d", "a", "b", "c", "d"}, few = {"a", "b", "c", "d", "a", "b", "a", "b"};
  CHECK(error(0, all) == "no error");
  CHECK(error(7, all) == "no error");
  CHECK(error(0, few) == "no error");
  CHECK(error(5, few) == "device cuda: node02 has 2 GPUs, but 4 ranks; use mpirun --map-by ppr:2:node");
  CHECK(error(1, std::vector<std::string>(8, "a")) == "device cuda: node01 has 1 GPU, but 4 ranks; use mpirun --map-by ppr:1:node");
}

TEST_CASE("ranks: one process sends nothing") {
  Ranks& one = Ranks::alone();
  const Tensor t = tensor_of(std::vector<double>{1, 2}, {2});
  one.sum({t});
  one.from_first(t);
  one.barrier();
  CHECK(values_of(t) == Values{1, 2});
  CHECK(one.sum_numbers(std::vector<double>{3}) == std::vector<double>{3});
  CHECK(one.from_first("text") == "text");
  CHECK(one.from_all("text") == std::vector<std::string>{"text"});
  CHECK(one.carrier(Device::cpu).empty());
}

TEST_CASE("ranks: sums of tensors on every device, rank 0's values, every rank's text") {
  const auto errors = on_ranks(3, [](Ranks& ranks) {
    const double r = ranks.rank();
    for (const Device device : {Device::cpu, Device::cuda_emulated})
      for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
        const Tensor t = to(convert(tensor_of(std::vector<double>{r, 10 * r, -r}, {3}), dtype), device);
        ranks.sum({t});
        if (values_of(t) != Values{3, 30, -3}) fail("a sum of {} on {}", {name_of(dtype), name_of(device)});
      }
    const Tensor t = tensor_of(std::vector<int64_t>{5 + ranks.rank(), 6}, {2});
    ranks.from_first(t);
    if (values_of(t) != Values{5, 6}) fail("from_first");
    if (ranks.from_all(std::to_string(ranks.rank())) != std::vector<std::string>{"0", "1", "2"}) fail("from_all");
    ranks.barrier();
  });
  CHECK(errors == none(3));
}

TEST_CASE("ranks: a tensor that cannot be sent is an error") {
  FixedRanks ranks(0, 2);
  CHECK(message_of([&] { ranks.sum({tensor_of(std::vector<int64_t>{1}, {1})}); }) == "ranks: cannot sum i64, expected f32, f64 or bf16");
  CHECK(message_of([&] { ranks.from_first(zeros({1}, Dtype::f32, Device::cuda_emulated)); }) ==
        "ranks: rank 0 sends a tensor on cuda_emulated, expected cpu");
}

TEST_CASE("ranks: a sum is a write, so the tape notices it") {
  FixedRanks ranks(0, 2);
  const Tensor t = tensor_of(std::vector<double>{1}, {1});
  const auto before = t.storage()->version;
  ranks.sum({t});
  CHECK(t.storage()->version != before);
}
