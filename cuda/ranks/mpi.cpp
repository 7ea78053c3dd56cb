// Ranks over MPI: tensors of the cpu, and all messages between ranks. The only file that includes mpi.h; its objects are linked by
// programs that may be several processes (CMakeLists.txt). MPI 3.1, its C interface, one thread at a time.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "core/cpu/clock.h"
#include "core/cpu/ending_signals.h"
#include "core/cpu/worker_thread.h"
#include "core/error.h"
#include "cuda/ranks/ranks.h"
#include "cuda/ranks/roll_call.h"

namespace ricci {
namespace {

constexpr int64_t kMessage = int64_t{1} << 30;  // bytes at most: MPI counts in int
constexpr auto kHelperNap = std::chrono::milliseconds(1);

// A WaitNote on its way.
struct Message {
  double seconds;
  int32_t waits;
  char where[116];
};

// "Open MPI 4.1.4" of "Open MPI v4.1.4, package: ...", "MPICH 4.0.2" of "MPICH Version:\t4.0.2\nMPICH Release ...".
std::string version() {
  char all[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(all, &length);
  const std::string text(all);
  const size_t number = std::min(text.find_first_of("0123456789"), text.size());
  for (const char* const name : {"MPICH ", "Open MPI "})
    if (text.starts_with(name)) return name + text.substr(number, text.find_first_of(",\n") - number);
  return text.substr(0, text.find_first_of(",\n"));
}

class MpiRanks final : public Ranks {
 public:
  MpiRanks();
  ~MpiRanks() override { MPI_Finalize(); }

  std::string carrier(Device) const override { return version(); }
  void all_to_all(const std::vector<Tensors>& outgoing, const std::vector<Tensors>& incoming) override;
  void all_gather(const Tensor& equal_shares) override;
  void sum(const Tensor& numbers) override;
  void from_first(const Tensor& t) override;
  void wait_but_for(int64_t last) override;
  void wait_patiently() override { meet(HUGE_VAL); }
  void wait_for_first() override { meet(rank_ == 0 ? timeout_ : HUGE_VAL); }
  void wait_until(const std::function<bool()>& done) override { wait_until(done, timeout_); }
  [[noreturn]] void end_all(const std::string& line) override;

 private:
  void begin_testing() override;
  void end_testing() override;

  // An exchange is one or several calls of MPI.
  struct Exchange {
    std::vector<MPI_Request> requests = {};
    std::vector<Tensor> kept = {};
  };

  void check(int error) const;  // an exception, if it is one
  // A new exchange, while the lock is held.
  [[nodiscard]] std::unique_lock<std::mutex> open();
  // Begins a call of it, f(&request), which does not block, on a tensor that is kept until it has ended.
  template <class F> void begin(const Tensor& t, F f);
  void send_or_receive(const Tensor& t, int rank, bool sends);
  bool test(size_t last);
  void meet(double limit);  // waits until every rank has come here
  void wait_until(const std::function<bool()>& done, double limit);
  void look_around(double waited, double limit);
  void tell(bool waits, double waited);

  MPI_Comm world_ = MPI_COMM_NULL, notes_ = MPI_COMM_NULL;
  std::optional<RollCall> roll_call_;
  std::deque<Message> told_;  // they leave when they can

  std::mutex mutex_;                // for MPI and what follows
  std::deque<Exchange> exchanges_;  // that have not ended
  int error_ = MPI_SUCCESS;         // found by a test

  std::thread helper_;
  std::condition_variable stop_;
  bool stops_ = false;
};

void MpiRanks::check(int error) const {
  if (error == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  fail("MPI: {}{}", {text, where_.empty() ? "" : " in " + where_});
}

// ---- The ranks that are there

MpiRanks::MpiRanks() {
  int given = MPI_THREAD_SINGLE;
  {
    const SignalsHeld inherited;  // by the threads that MPI starts
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // communicators made of it inherit it
  if (given < MPI_THREAD_SERIALIZED) fail("MPI: {} serves one thread only; a build of it with threads is needed", {transport_version()});
  check(MPI_Comm_dup(MPI_COMM_WORLD, &world_));
  check(MPI_Comm_dup(MPI_COMM_WORLD, &notes_));
  MPI_Comm_rank(world_, &rank_);
  MPI_Comm_size(world_, &count_);
  MPI_Comm machine = MPI_COMM_NULL;
  check(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine));
  check(MPI_Comm_rank(machine, &local_));
  check(MPI_Comm_free(&machine));
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  check(MPI_Get_processor_name(name, &length));
  machines_.assign(static_cast<size_t>(count_), "");
  roll_call_.emplace(*this);
  machines_ = from_all(name);
}

// ---- Exchanges

std::unique_lock<std::mutex> MpiRanks::open() {
  std::unique_lock lock(mutex_);
  exchanges_.emplace_back();
  return lock;
}

template <class F> void MpiRanks::begin(const Tensor& t, F f) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(f(&request));
  exchanges_.back().requests.push_back(request);
  exchanges_.back().kept.push_back(t);
}

// Between two ranks messages of one tag arrive in the order in which they were sent.
void MpiRanks::send_or_receive(const Tensor& t, int rank, bool sends) {
  char* const data = static_cast<char*>(t.raw());
  for (int64_t done = 0; done < t.bytes(); done += kMessage) {
    const int bytes = static_cast<int>(std::min(kMessage, t.bytes() - done));
    begin(t, [&](MPI_Request* request) {
      return sends ? MPI_Isend(data + done, bytes, MPI_BYTE, rank, 0, world_, request)
                   : MPI_Irecv(data + done, bytes, MPI_BYTE, rank, 0, world_, request);
    });
  }
}

void MpiRanks::all_to_all(const std::vector<Tensors>& outgoing, const std::vector<Tensors>& incoming) {
  const auto lock = open();
  for (const bool sends : {false, true})  // what arrives finds its place
    for (int step = 1; step < count_; ++step) {
      const int other = (rank_ + (sends ? step : count_ - step)) % count_;  // not all to the same rank at a time
      for (const Tensor& t : (sends ? outgoing : incoming)[static_cast<size_t>(other)]) send_or_receive(t, other, sends);
    }
}

void MpiRanks::all_gather(const Tensor& equal_shares) {
  if (equal_shares.size() % count_) fail("ranks: {} elements cannot be gathered in {} equal shares", {equal_shares.size(), count_});
  const int64_t share = equal_shares.bytes() / count_;
  if (share > kMessage) fail("ranks: shares of {} bytes, at most {}", {share, kMessage});
  const auto lock = open();
  begin(equal_shares, [&](MPI_Request* request) {
    return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, equal_shares.raw(), static_cast<int>(share), MPI_BYTE, world_, request);
  });
}

void MpiRanks::sum(const Tensor& numbers) {
  double* const data = numbers.data<double>();
  const auto lock = open();
  begin(numbers, [&](MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(numbers.size()), MPI_DOUBLE, MPI_SUM, world_, request);
  });
}

void MpiRanks::from_first(const Tensor& t) {
  char* const data = static_cast<char*>(t.raw());
  const auto lock = open();
  for (int64_t done = 0; done < t.bytes(); done += kMessage)
    begin(t, [&](MPI_Request* request) {
      return MPI_Ibcast(data + done, static_cast<int>(std::min(kMessage, t.bytes() - done)), MPI_BYTE, 0, world_, request);
    });
}

// ---- Waiting

// Returns true if all that was begun has ended, except for at most the `last` exchanges. They end in the order in which they were begun.
bool MpiRanks::test(size_t last) {
  const std::lock_guard lock(mutex_);
  while (!exchanges_.empty() && error_ == MPI_SUCCESS) {
    int all = 0;
    std::vector<MPI_Request>& requests = exchanges_.front().requests;
    std::vector<MPI_Status> found(requests.size());
    error_ = MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, found.data());
    for (const MPI_Status& one : found)
      if (error_ == MPI_ERR_IN_STATUS && one.MPI_ERROR != MPI_SUCCESS && one.MPI_ERROR != MPI_ERR_PENDING) error_ = one.MPI_ERROR;
    if (!all || error_ != MPI_SUCCESS) break;
    exchanges_.pop_front();
  }
  return exchanges_.size() <= last || error_ != MPI_SUCCESS;
}

void MpiRanks::wait_but_for(int64_t last) {
  wait_until([&] { return test(static_cast<size_t>(last)); }, timeout_);
  check(error_);
}

void MpiRanks::meet(double limit) {
  const double before = waited_;  // this is no exchange that slows the rank down
  {
    const auto lock = open();
    begin({}, [&](MPI_Request* request) { return MPI_Ibarrier(world_, request); });
  }
  wait_until([this] { return test(0); }, limit);
  check(error_);
  waited_ = before;
}

void MpiRanks::wait_until(const std::function<bool()>& done, double limit) {
  waited_ += ricci::wait_until(done, [&](double waited) { look_around(waited, limit); });
  if (roll_call_->has_told()) tell(false, 0);
}

void MpiRanks::look_around(double waited, double limit) {
  for (int arrived = 1;;) {
    const std::lock_guard lock(mutex_);
    Message message{};
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, 0, notes_, &arrived, &status));
    if (!arrived) break;
    check(MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, 0, notes_, MPI_STATUS_IGNORE));
    roll_call_->heard(status.MPI_SOURCE, {message.waits != 0, message.seconds, message.where});
  }
  if (roll_call_->must_tell(waited, limit)) tell(true, waited);
  if (const std::optional<std::string> line = roll_call_->verdict(seconds_now(), timeout_)) end_all(*line);
}

void MpiRanks::tell(bool waits, double waited) {
  Message message{.seconds = waited, .waits = waits, .where = {}};
  std::strncpy(message.where, where_.c_str(), sizeof message.where - 1);
  if (waits) roll_call_->told({true, waited, where_}, seconds_now());
  else roll_call_->took_back();
  const std::lock_guard lock(mutex_);
  for (int r = 0; r < count_; ++r) {
    if (r == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(&told_.emplace_back(message), sizeof message, MPI_BYTE, r, 0, notes_, &request));
    check(MPI_Request_free(&request));
  }
}

// ---- The helper, which does nothing but test

void MpiRanks::begin_testing() {
  stops_ = false;
  helper_ = start_worker([this] {
    for (;;) {
      test(0);
      std::unique_lock lock(mutex_);
      if (stop_.wait_for(lock, kHelperNap, [this] { return stops_; })) return;
    }
  });
}

void MpiRanks::end_testing() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  stop_.notify_one();
  helper_.join();
}

// An error that all ranks meet is printed by rank 0: the launcher ends the others while they nap, which takes a busy machine over a second.
void MpiRanks::end_all(const std::string& line) {
  constexpr unsigned kNap = 2'000'000, kMost = 5;  // microseconds, naps: each rank after the one before
  for (const int signal : kEndingSignals) std::signal(signal, SIG_DFL);
  ::usleep(std::min(static_cast<unsigned>(rank_), kMost) * kNap);
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, line.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

[[maybe_unused]] const bool mpi_carries = set_transport({version, [] { return std::unique_ptr<Ranks>(std::make_unique<MpiRanks>()); }});

}  // namespace
}  // namespace ricci
