// The processes of one training run. This process is rank r of R. A launcher such as mpirun started the processes, MPI carries their
// messages, and NCCL adds up the tensors of their GPUs.
//   Ranks& ranks = Ranks::join();
//   ranks.sum({gradient, loss});  // in place; the results are bitwise identical on all ranks
// Every rank makes the same calls in the same order, from the program's first thread. Each call waits for all ranks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace ricci {

// This class is for one process: it sends nothing and waits for nothing. mpi.cpp derives a class for multiple processes.
class Ranks {
 public:
  static Ranks& alone();
  // The ranks that a launcher started, or alone() for one rank or without a launcher. Later calls return the same object. Errors: this
  // program was built without MPI; the launcher and MPI disagree on the number of ranks.
  static Ranks& join();
  static Ranks& joined();  // the last result of join(), or alone() before the first join()
  static void leave();     // finalizes MPI; call it before the program ends

  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  int rank() const { return rank_; }
  int count() const { return count_; }
  int local() const { return local_; }                                            // index of this rank on its machine
  const std::string& machine(int rank) const { return machines_[size_t(rank)]; }  // empty for one process
  std::string name(int rank) const;                                               // "rank 3 on node07"
  int machine_count() const;
  // The library that adds up the device's tensors: "Open MPI 4.1.4", "NCCL 2.28.9"; empty for one process.
  std::string carrier(Device device) const;

  // Replaces each tensor (f32, f64 or bf16, on any device) by its sum over all ranks. The order of the additions depends only on the number
  // of ranks and the library, so the results of a second run with the same ranks are bitwise identical.
  void sum(const std::vector<Tensor>& tensors);
  std::vector<double> sum_numbers(std::vector<double> numbers);  // one list per rank, all of equal length
  // Broadcasts rank 0's tensor (on the CPU, in place) or text to every rank. The other ranks wait without a limit. Rank 0 may still be
  // reading a text or saving a checkpoint.
  void from_first(const Tensor& t);
  std::string from_first(const std::string& text) { return text_from(0, text, kNoLimit); }
  std::vector<std::string> from_all(const std::string& text);  // the text of each rank
  void barrier() { meet(kNoLimit); }                           // waits for every rank, without a limit

  // Sets the work of this rank, for messages: "step 812". A wait with a limit ends all ranks after the limit, with a line that names the
  // missing ranks. If a rank stops later, inside a call of MPI or NCCL, only the launcher notices it.
  void at(const std::string& where) { where_ = where; }
  const std::string& where() const { return where_; }
  void set_timeout(double seconds) { timeout_ = seconds; }
  // "rank 5 on node02 does not answer: the other 7 have waited for it for 300 s (rank_timeout) in step 812".
  std::string describe_missing(const std::vector<int>& missing) const;
  // The text that ends all ranks after an error of this rank: "rank 3 on node07: step 812: ...". Before the first step, the text of rank 0
  // does not name the rank.
  std::string with_rank(const std::string& error) const;
  // Prints the line after the program's name and ends all ranks with exit code 1. If multiple ranks call end_all(), one line is printed,
  // rank 0's if possible.
  [[noreturn]] virtual void end_all(const std::string& line);

 protected:
  static constexpr double kNoLimit = 1e18;  // seconds
  // The messages between processes. meet() waits until all ranks have called it, and ends them after `seconds`. It is called before the
  // other two functions. MPI and NCCL never stop waiting for a stuck rank.
  virtual void meet(double /*seconds*/) {}
  virtual void sum_on_host(void*, int64_t /*size*/, Dtype) {}
  virtual void send_from(int /*rank*/, void*, int64_t /*bytes*/) {}  // to all other ranks

  std::string text_from(int rank, const std::string& text, double seconds);

  int rank_ = 0, count_ = 1, local_ = 0;
  std::vector<std::string> machines_{""};  // one per rank
  double timeout_ = 300;                   // seconds
  std::string where_;
};

void check_gpus(Ranks& ranks);  // call it on all ranks; error: a machine has more ranks than GPUs

// NCCL, for Ranks::sum in a build with CUDA (cuda/toolkit/nccl.cpp), loaded by the first call.
std::string nccl_version();  // "NCCL 2.28.9"
// Sums on the current stream; the host does not wait for the GPU.
void sum_by_nccl(Ranks& ranks, const std::vector<Tensor>& tensors);

// The library that connects processes. A program that is linked with one sets it before main().
struct Transport {
  std::string (*version)() = nullptr;  // "Open MPI 4.1.4"
  std::unique_ptr<Ranks> (*join)() = nullptr;
};
extern Transport transport;

// The launcher of this process, such as mpirun, and the number of processes, from the environment.
struct Launcher {
  std::string name;    // "mpirun", "srun", "mpiexec"; empty without a launcher
  int rank = 0;        // index of this process among the started processes
  int count = 1;       // the least possible number of started processes
  bool counts = true;  // false if `count` only follows from the rank
};
Launcher find_launcher();

}  // namespace ricci
