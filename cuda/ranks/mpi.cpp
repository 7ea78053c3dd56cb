// Implements Ranks with the C interface of MPI 3.1, on the program's first thread. Only this file includes mpi.h. Only programs that can
// run as multiple processes are linked with it (CMakeLists.txt); the others run on machines without MPI. An MPI error ends all ranks with
// MPI's text.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <regex>

#include "core/cpu/available.h"
#include "core/dtype.h"
#include "cuda/ranks/ranks.h"

namespace ricci {
namespace {

// "Open MPI 4.1.4" from "Open MPI v4.1.4, package: ...", or "MPICH 4.0.2" from "MPICH Version:\t4.0.2\nMPICH Release ...".
std::string version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::cmatch found;
  return std::regex_search(text, found, std::regex("(Open MPI|MPICH)[^0-9]*([0-9.]+)")) ? found.format("$1 $2") : "MPI";
}

// Adds bf16 numbers, a type that MPI lacks.
void add_bf16(void* terms, void* sums, int* count, MPI_Datatype*) {
  const auto* const x = static_cast<const bf16*>(terms);
  auto* const sum = static_cast<bf16*>(sums);
  for (int i = 0; i < *count; ++i) sum[i] = bf16(static_cast<float>(x[i]) + static_cast<float>(sum[i]));
}

constexpr int64_t kPiece = int64_t{4} << 20;  // bytes

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    int given = 0, length = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given);
    MPI_Op_create(add_bf16, 1, &add_bf16_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
    waits_.assign(static_cast<size_t>(count_), 0);
    machines_.assign(static_cast<size_t>(count_), "");
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Get_processor_name(name, &length);
    machines_ = from_all(name);
    local_ = static_cast<int>(std::count(machines_.begin(), machines_.begin() + rank_, name));
  }
  ~MpiRanks() override { MPI_Finalize(); }

  // If all ranks have the same error, rank 0 prints it: rank 0 sleeps for the shortest time, and the launcher ends the others while they
  // sleep. On a busy machine, this takes more than a second.
  [[noreturn]] void end_all(const std::string& line) override {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    ::sleep(2 * static_cast<unsigned>(std::min(rank_, 5)));
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, line.c_str());
    ::usleep(200'000);  // MPICH's launcher can lose a line that is written just before the end
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::_Exit(1);
  }

 private:
  // Sums in parts: MPI's counts are int, and a part stays in the cache until it is added. On two ranks of one machine, 124M f32 take 60 ms,
  // but 120 ms in one part (Open MPI 4.1.4).
  void sum_on_host(void* data, int64_t size, Dtype dtype) override {
    const MPI_Datatype wide = dtype == Dtype::f64 ? MPI_DOUBLE : MPI_FLOAT;
    const bool is_bf16 = dtype == Dtype::bf16;
    in_pieces(data, size, size_of(dtype), [&](char* piece, int count) {
      MPI_Allreduce(MPI_IN_PLACE, piece, count, is_bf16 ? MPI_UINT16_T : wide, is_bf16 ? add_bf16_ : MPI_SUM, MPI_COMM_WORLD);
    });
  }

  void send_from(int rank, void* data, int64_t bytes) override {
    in_pieces(data, bytes, 1, [&](char* piece, int count) { MPI_Bcast(piece, count, MPI_BYTE, rank, MPI_COMM_WORLD); });
  }

  // Calls f(piece, elements).
  template <class F> static void in_pieces(void* data, int64_t size, int64_t element_bytes, const F& f) {
    const int64_t most = kPiece / element_bytes;
    for (int64_t done = 0; done < size; done += most)
      f(static_cast<char*>(data) + done * element_bytes, static_cast<int>(std::min(most, size - done)));
  }

  // MPI's own wait keeps a core busy, so after a millisecond this function sleeps between two tests. Before that, it only yields the core.
  // A sleep is longer than most waits.
  void meet(double limit) override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    const double begun = seconds_now();
    double waited = 0, looked = begun;
    for (int ended = 0;;) {
      MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
      if (ended) break;
      if (seconds_now() < begun + 1e-3) {
        ::sched_yield();
        continue;
      }
      ::usleep(100);
      const double now = seconds_now();
      if (now < looked + 0.1) continue;
      waited += std::min(now - looked, 1.0);  // excludes the time that this process was stopped
      looked = now;
      find_missing(waited, limit);
    }
    if (reported_at_ > 0) report(false);
    reported_at_ = 0;
  }

  // MPI does not notice that a process is stopped or stuck. So a rank that has waited for `rank_timeout` reports to all others that it is
  // waiting. Every rank that is also waiting, or begins to wait, then does the same. A rank without a report is missing. Five seconds
  // later, the lowest rank with a report names the missing ranks and ends all ranks; if it is stuck, the next one does so after three more
  // seconds. A rank withdraws its report if its wait ends after all.
  void find_missing(double waited, double limit) {
    for (int arrived = 1;;) {
      MPI_Status note;
      MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &arrived, &note);
      if (!arrived) break;
      MPI_Recv(&waits_[static_cast<size_t>(note.MPI_SOURCE)], 1, MPI_INT, note.MPI_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (reported_at_ == 0 && (waited >= limit || std::count(waits_.begin(), waits_.end(), 1) > 0)) {
      report(true);
      reported_at_ = waited;
    }
    const auto lower = static_cast<double>(std::count(waits_.begin(), waits_.begin() + rank_, 1));
    if (waited < limit || waited < reported_at_ + 5 + 3 * lower) return;
    std::vector<int> missing;
    for (int r = 0; r < count_; ++r)
      if (!waits_[static_cast<size_t>(r)]) missing.push_back(r);
    if (!missing.empty()) end_all(describe_missing(missing));
  }

  void report(bool waits) {
    static constexpr int kNotes[] = {0, 1};  // static, since MPI sends them later
    waits_[static_cast<size_t>(rank_)] = waits;
    for (int r = 0; r < count_; ++r) {
      if (r == rank_) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(&kNotes[waits], 1, MPI_INT, r, 0, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
    }
  }

  MPI_Op add_bf16_ = MPI_OP_NULL;
  std::vector<int> waits_;  // for each rank, the newest report: 1 if the rank is waiting
  double reported_at_ = 0;  // seconds from the start of this wait; 0 without a report
};

[[maybe_unused]] const Transport mpi = transport = {version, [] { return std::unique_ptr<Ranks>(std::make_unique<MpiRanks>()); }};

}  // namespace
}  // namespace ricci
