// Ranks over MPI: tensors of the cpu, and all that ranks say to each other. The only file that includes mpi.h; its objects are linked by
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
constexpr useconds_t kNap = 100;                // microseconds between two tests of a rank that waits: MPI's own waiting spins
constexpr int kSpins = 20;                      // tests before the first nap
constexpr auto kHelperNap = std::chrono::milliseconds(1);
constexpr double kLook = 0.1;  // seconds between two looks at what waiting ranks tell

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
  return (text.starts_with("MPICH") ? "MPICH " : "Open MPI ") + text.substr(number, text.find_first_of(",\n") - number);
}

class MpiRanks final : public Ranks {
 public:
  MpiRanks();
  ~MpiRanks() override { MPI_Finalize(); }

  std::string carrier(Device) const override { return version(); }
  void all_to_all(const std::vector<Tensor>& to, const std::vector<Tensor>& from) override;
  void all_gather(const Tensor& equal_shares) override;
  void sum(const Tensor& numbers) override;
  void from_first(const Tensor& t) override;
  void wait() override;
  void wait_patiently() override { meet(HUGE_VAL); }
  void wait_for_first() override { meet(rank_ == 0 ? timeout_ : HUGE_VAL); }
  void wait_until(const std::function<bool()>& done) override { wait_until(done, timeout_); }
  [[noreturn]] void end_all(const std::string& line) override;

 private:
  void begin_testing() override;
  void end_testing() override;

  void check(int error) const;  // an exception, if it is one
  // Begins a non-blocking call, f(&request), on a tensor that is kept until it has ended.
  template <class F> void begin(const Tensor& t, F f);
  void send_or_receive(const Tensor& t, int rank, bool sends);
  bool test();
  void meet(double limit);  // waits until every rank has come here
  void wait_until(const std::function<bool()>& done, double limit);
  void look_around(double waited, double limit);
  void tell(bool waits, double waited);
  void find_machines();

  MPI_Comm world_ = MPI_COMM_NULL, notes_ = MPI_COMM_NULL;
  std::optional<RollCall> roll_call_;
  std::deque<std::pair<Message, MPI_Request>> told_;  // they are small, and leave at once

  std::mutex mutex_;  // for MPI and what follows
  std::vector<MPI_Request> requests_;
  std::vector<Tensor> kept_;
  int error_ = MPI_SUCCESS;  // found by a test

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

// ---- Who is there

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
  find_machines();
  roll_call_.emplace(*this);
}

void MpiRanks::find_machines() {
  MPI_Comm machine = MPI_COMM_NULL;
  check(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine));
  MPI_Comm_rank(machine, &local_);
  MPI_Comm_free(&machine);
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  check(MPI_Get_processor_name(name, &length));
  std::vector<char> names(static_cast<size_t>(count_) * sizeof name);
  check(MPI_Allgather(name, sizeof name, MPI_CHAR, names.data(), sizeof name, MPI_CHAR, world_));
  machines_.clear();
  for (int r = 0; r < count_; ++r) machines_.emplace_back(names.data() + static_cast<size_t>(r) * sizeof name);
}

// ---- Exchanges

template <class F> void MpiRanks::begin(const Tensor& t, F f) {
  const std::lock_guard lock(mutex_);
  MPI_Request request = MPI_REQUEST_NULL;
  check(f(&request));
  requests_.push_back(request);
  kept_.push_back(t);
}

// Between two ranks messages of one tag arrive in the order in which they were sent.
void MpiRanks::send_or_receive(const Tensor& t, int rank, bool sends) {
  constexpr int tag = 0;
  char* const data = static_cast<char*>(t.raw());
  for (int64_t done = 0; done < t.bytes(); done += kMessage) {
    const int bytes = static_cast<int>(std::min(kMessage, t.bytes() - done));
    begin(t, [&](MPI_Request* request) {
      return sends ? MPI_Isend(data + done, bytes, MPI_BYTE, rank, tag, world_, request)
                   : MPI_Irecv(data + done, bytes, MPI_BYTE, rank, tag, world_, request);
    });
  }
}

void MpiRanks::all_to_all(const std::vector<Tensor>& to, const std::vector<Tensor>& from) {
  for (const bool sends : {false, true})  // what arrives finds its place
    for (int step = 1; step < count_; ++step) {
      const int other = (rank_ + (sends ? step : count_ - step)) % count_;  // not all to the same rank at a time
      const Tensor& t = (sends ? to : from)[static_cast<size_t>(other)];
      if (t) send_or_receive(t, other, sends);
    }
}

void MpiRanks::all_gather(const Tensor& equal_shares) {
  if (equal_shares.size() % count_) fail("ranks: {} elements cannot be gathered in {} equal shares", {equal_shares.size(), count_});
  const int64_t share = equal_shares.bytes() / count_;
  if (share > kMessage) fail("ranks: shares of {} bytes, at most {}", {share, kMessage});
  begin(equal_shares, [&](MPI_Request* request) {
    return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, equal_shares.raw(), static_cast<int>(share), MPI_BYTE, world_, request);
  });
}

void MpiRanks::sum(const Tensor& numbers) {
  double* const data = numbers.data<double>();
  begin(numbers, [&](MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(numbers.size()), MPI_DOUBLE, MPI_SUM, world_, request);
  });
}

void MpiRanks::from_first(const Tensor& t) {
  char* const data = static_cast<char*>(t.raw());
  for (int64_t done = 0; done < t.bytes(); done += kMessage)
    begin(t, [&](MPI_Request* request) {
      return MPI_Ibcast(data + done, static_cast<int>(std::min(kMessage, t.bytes() - done)), MPI_BYTE, 0, world_, request);
    });
}

// ---- Waiting

// True: all that was begun has ended.
bool MpiRanks::test() {
  const std::lock_guard lock(mutex_);
  if (requests_.empty() || error_ != MPI_SUCCESS) return true;
  int all = 0;
  error_ = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
  if (!all) return error_ != MPI_SUCCESS;
  requests_.clear();
  kept_.clear();
  return true;
}

void MpiRanks::wait() {
  wait_until([this] { return test(); }, timeout_);
  check(error_);
}

void MpiRanks::meet(double limit) {
  const double before = waited_;  // this is no exchange that slows the rank down
  begin({}, [&](MPI_Request* request) { return MPI_Ibarrier(world_, request); });
  wait_until([this] { return test(); }, limit);
  check(error_);
  waited_ = before;
}

void MpiRanks::wait_until(const std::function<bool()>& done, double limit) {
  const double begun = seconds_now();
  double looked = begun, looked_for = 0;
  for (int64_t tests = 0; !done(); ++tests) {
    if (tests < kSpins) continue;
    ::usleep(kNap);
    const double now = seconds_now();
    if (now < looked + kLook) continue;
    looked_for += std::min(now - looked, 1.0);  // without the time for which this process was stopped
    looked = now;
    look_around(looked_for, limit);
  }
  if (roll_call_->has_told()) tell(false, 0);
  waited_ += seconds_now() - begun;
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
  const WaitNote note{waits, waited, where_};
  Message message{.seconds = note.seconds, .waits = note.waits, .where = {}};
  std::strncpy(message.where, note.where.c_str(), sizeof message.where - 1);
  if (waits) roll_call_->told(note, seconds_now());
  else roll_call_->took_back();
  const std::lock_guard lock(mutex_);
  for (int r = 0; r < count_; ++r) {
    if (r == rank_) continue;
    auto& [sent, request] = told_.emplace_back(message, MPI_REQUEST_NULL);
    check(MPI_Isend(&sent, sizeof sent, MPI_BYTE, r, 0, notes_, &request));
  }
}

// ---- The helper, which does nothing but test

void MpiRanks::begin_testing() {
  stops_ = false;
  helper_ = start_worker([this] {
    for (;;) {
      test();
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

// ---- The end

// An error that all ranks meet is told by rank 0: what a launcher sends to end the others reaches them while they nap.
void MpiRanks::end_all(const std::string& line) {
  for (const int signal : kEndingSignals) std::signal(signal, SIG_DFL);
  ::usleep(static_cast<useconds_t>(std::min(rank_, 10)) * 500'000);  // each behind the one before
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, line.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

[[maybe_unused]] const bool mpi_carries = set_transport({version, [] { return std::unique_ptr<Ranks>(std::make_unique<MpiRanks>()); }});

}  // namespace
}  // namespace ricci
