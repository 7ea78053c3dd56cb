// The parts of Ranks that need neither MPI nor NCCL: launchers, the order of calls and error messages.
#include "cuda/ranks/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/memory/dry_run.h"
#include "cuda/device/device.h"

namespace ricci {

static Ranks* started = nullptr;  // not freed after an error: MPI would wait for the other ranks
Transport transport;

// The first variable that is set decides. mpirun comes before Slurm: processes of mpirun inherit the variables of a Slurm job.
Launcher find_launcher() {
  const auto number_in = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return text ? std::atoi(text) : -1;
  };
  const int tasks = number_in("SLURM_STEP_NUM_TASKS"), open_mpi = number_in("OMPI_COMM_WORLD_SIZE"), mpich = number_in("PMI_SIZE");
  const auto found = [&](const char* name, const char* rank_variable, int count) {
    const int rank = std::max(0, number_in(rank_variable));
    return Launcher{.name = name, .rank = rank, .count = std::max(count, rank + 1), .counts = count > 0};
  };
  if (open_mpi >= 0) return found("mpirun", "OMPI_COMM_WORLD_RANK", open_mpi);
  if (mpich >= 0) return found(tasks >= 0 ? "srun" : "mpiexec", "PMI_RANK", mpich);
  if (number_in("PMIX_RANK") >= 0) return found(tasks >= 0 ? "srun" : "mpirun", "PMIX_RANK", tasks);
  return tasks >= 0 ? found("srun", "SLURM_PROCID", tasks) : Launcher{};
}

Ranks& Ranks::alone() {
  static Ranks one;
  return one;
}

Ranks& Ranks::joined() { return started ? *started : alone(); }

Ranks& Ranks::join() {
  const Launcher launcher = find_launcher();
  if (started || launcher.name.empty() || (launcher.counts && launcher.count == 1)) return joined();
  if (!transport.join)
    fail("started as process {} of {} by {}, but this program was built without MPI; install libopenmpi-dev and build again",
        {launcher.rank + 1, launcher.count, launcher.name});
  started = transport.join().release();
  if (launcher.counts && launcher.count != started->count())
    fail("{} started {} processes, but MPI sees {}; use srun --mpi=pmix (srun --mpi=list), or mpirun inside the job",
        {launcher.name, launcher.count, started->count()});
  use_gpu(started->local());
  return *started;
}

void Ranks::leave() { delete std::exchange(started, nullptr); }

std::string Ranks::name(int rank) const { return format_message("rank {} on {}", {rank, machine(rank)}); }

int Ranks::machine_count() const { return static_cast<int>(std::set<std::string>(machines_.begin(), machines_.end()).size()); }

// Every rank checks its own machine. A launcher can show each rank only one GPU, so the GPUs' addresses are compared.
void check_gpus(Ranks& ranks) {
  const std::vector<std::string> all = ranks.from_all(gpu_in_use());
  const std::string& machine = ranks.machine(ranks.rank());
  std::set<std::string> gpus;
  size_t here = 0;
  for (int r = 0; r < ranks.count(); ++r) {
    if (ranks.machine(r) != machine) continue;
    gpus.insert(all[static_cast<size_t>(r)]);
    ++here;
  }
  if (const size_t count = gpus.size(); count < here)
    fail("device cuda: {} has {} GPU{}, but {} ranks; use mpirun --map-by ppr:{}:node",
        {machine, count, count == 1 ? "" : "s", here, count});
}

// ---- Messages

std::string Ranks::carrier(Device device) const {
  if (count_ == 1) return "";
#ifdef RICCI_HAS_CUDA
  if (device == Device::cuda) return nccl_version();
#endif
  return device != Device::cuda && transport.version ? transport.version() : "";
}

void Ranks::sum(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    if (t.dtype() == Dtype::i64) fail("ranks: cannot sum {}, expected {}", {name_of(t.dtype()), kFloatingDtypes});
  if (count_ == 1 || tensors.empty() || is_dry_run()) return;
  meet(timeout_);
#ifdef RICCI_HAS_CUDA
  if (tensors[0].device() == Device::cuda) {
    for (const Tensor& t : tensors) t.written();
    return sum_by_nccl(*this, tensors);
  }
#endif
  for (const Tensor& t : tensors) {
    const Tensor here = to(t, Device::cpu);
    sum_on_host(here.raw(), here.size(), here.dtype());
    if (t.device() == Device::cpu) t.written();
    else copy(t, here);
  }
}

std::vector<double> Ranks::sum_numbers(std::vector<double> numbers) {
  meet(timeout_);
  sum_on_host(numbers.data(), static_cast<int64_t>(numbers.size()), Dtype::f64);
  return numbers;
}

void Ranks::from_first(const Tensor& t) {
  if (t.device() != Device::cpu) fail("ranks: rank 0 sends a tensor on {}, expected cpu", {name_of(t.device())});
  meet(kNoLimit);
  send_from(0, t.raw(), t.bytes());
  t.written();
}

std::vector<std::string> Ranks::from_all(const std::string& text) {
  std::vector<std::string> all;
  for (int r = 0; r < count_; ++r) all.push_back(text_from(r, text, timeout_));
  return all;
}

std::string Ranks::text_from(int rank, const std::string& text, double seconds) {
  std::string sent = text;
  auto bytes = static_cast<int64_t>(sent.size());
  meet(seconds);
  send_from(rank, &bytes, sizeof bytes);
  sent.resize(static_cast<size_t>(bytes));
  send_from(rank, sent.data(), bytes);
  return sent;
}

// ---- Errors

std::string Ranks::with_rank(const std::string& error) const {
  if (rank_ == 0 && where_.empty()) return error;
  return name(rank_) + ": " + (where_.empty() || error.starts_with(where_) ? "" : where_ + ": ") + error;
}

std::string Ranks::describe_missing(const std::vector<int>& missing) const {
  constexpr size_t kNamed = 3;
  const std::string place = where_.empty() ? "" : " in " + where_;
  std::string names;
  for (size_t i = 0; i < std::min(missing.size(), kNamed); ++i) names += (i ? ", " : "") + name(missing[i]);
  if (missing.size() > kNamed) names += format_message(" and {} more", {missing.size() - kNamed});
  const bool one = missing.size() == 1;
  const size_t others = static_cast<size_t>(count_) - missing.size();
  const std::string waiting = others == 1 ? "the other has" : format_message("the other {} have", {others});
  return format_message("{} {} not answer: {} waited for {} for {:.0f} s (rank_timeout){}",
      {names, one ? "does" : "do", waiting, one ? "it" : "them", timeout_, place});
}

void Ranks::end_all(const std::string& line) { fail("{}", {line}); }

}  // namespace ricci
