// A pool of threads. A call opens a job, and threads that arrive while it is open take chunks of it; the caller also works. When no chunk
// is left, the caller waits only for threads that are still working. OpenMP's barriers would also wait for threads that other programs keep
// from running.
#include "core/cpu/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/cpu/available.h"
#include "core/error.h"
#include "core/memory/dry_run.h"

namespace ricci {
namespace {

constexpr int kSpins = 4000;  // about 50 microseconds; in a training step, the next call usually comes sooner

int default_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int asked = text ? std::atoi(text) : 0;
  return asked > 0 ? asked : available_processors();
}

std::atomic<int>& threads() {
  static std::atomic<int> count{default_threads()};
  return count;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // empties the pipeline; most processors ignore `yield`
#else
  std::this_thread::yield();
#endif
}

thread_local bool inside = false;  // true inside a parallel_for: a nested one uses only its own thread

thread_local bool (*stop_when)() = nullptr;  // see finish_unless

struct Stopped {};  // thrown to leave stopped work

// The chunks of one call. Every thread has a share of adjacent chunks and processes them in order, so their elements are usually still in
// its cache from the last call. A thread that has finished its share helps the others.
struct Work {
  static constexpr int kMaxShares = 32;  // with more threads, some of them process one share together
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  int64_t n, grain;
  ChunkFunction call;
  const void* body;
  int shares;
  std::array<Share, kMaxShares> share{};
  std::mutex mutex{};
  std::exception_ptr error{};           // thrown by the failed chunk with the lowest index
  std::atomic<int64_t> error_begin{n};  // the first index of that chunk

  Work(int64_t n_, int64_t grain_, ChunkFunction call_, const void* body_, int threads)
      : n(n_), grain(grain_), call(call_), body(body_), shares(std::min(threads, kMaxShares)) {
    const int64_t chunks = (n + grain - 1) / grain;
    for (int i = 0; i < shares; ++i) {
      share[i].next = chunks * i / shares * grain;
      share[i].end = std::min(n, chunks * (i + 1) / shares * grain);
    }
  }

  void run(int thread) {
    inside = true;
    for (int i = 0; i < shares; ++i) finish(share[(thread + i) % shares]);
    inside = false;
  }

 private:
  void finish(Share& part) {
    for (int64_t begin; (begin = part.next.fetch_add(grain, std::memory_order_relaxed)) < part.end && begin < error_begin;) {
      try {
        call(body, begin, std::min(n, begin + grain));
      } catch (...) {
        std::lock_guard lock(mutex);
        if (begin > error_begin) return;
        error = std::current_exception();
        error_begin = begin;
      }
    }
  }
};

class Pool {
 public:
  // Runs the work on the caller and up to `helpers` other threads. Returns false, with no work done, if another thread's job is running.
  bool run(Work& work, int helpers) {
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock) return false;
    while (started_ < helpers && !exhausted_) {
      try {
        std::thread([this, thread = started_ + 1] { serve(thread); }).detach();
        ++started_;
      } catch (const std::exception&) {  // no thread or memory is left: use fewer threads, with the same results
        exhausted_ = true;
      }
    }
    work_ = &work;
    const uint32_t number = number_.load(std::memory_order_relaxed) + 1;
    job_.store(uint64_t{number} << 32 | kOpen | static_cast<uint64_t>(helpers) << 16);
    number_.store(number);
    number_.notify_all();
    work.run(0);
    uint64_t job = job_.fetch_and(~kOpen);
    for (int spins = 0; (job & kActive) != 0; job = job_.load(std::memory_order_acquire))
      ++spins < kSpins ? relax() : std::this_thread::yield();
    return true;
  }

 private:
  // A job in 64 bits: its index, whether it is open, how many more threads can join, and how many work on it.
  static constexpr uint64_t kOpen = uint64_t{1} << 31, kRoom = 0x7fff0000, kOneRoom = 0x10000, kActive = 0xffff;

  [[noreturn]] void serve(int thread) {
    for (uint32_t seen = 0;;) {
      for (int spins = 0; spins < kSpins && number_.load(std::memory_order_relaxed) == seen; ++spins) relax();
      number_.wait(seen);
      seen = number_.load(std::memory_order_acquire);
      uint64_t job = job_.load(std::memory_order_acquire);
      while (job >> 32 == seen && (job & kOpen) && (job & kRoom)) {
        if (!job_.compare_exchange_weak(job, job - kOneRoom + 1)) continue;
        work_.load(std::memory_order_relaxed)->run(thread);
        job_.fetch_sub(1, std::memory_order_release);
        break;
      }
    }
  }

  std::mutex busy_;
  int started_ = 0;         // number of threads, not counting callers
  bool exhausted_ = false;  // the system refused to start another thread
  std::atomic<Work*> work_{nullptr};
  std::atomic<uint64_t> job_{0};
  std::atomic<uint32_t> number_{0};  // index of the newest job; sleeping threads wait until it changes
};

Pool& pool() {
  static Pool& one = *new Pool;  // never destroyed; its threads end with the program
  return one;
}

}  // namespace

int thread_count() { return threads(); }

void set_thread_count(int count) {
  if (count < 1) fail("threads: expected at least 1, got {}", {count});
  threads() = count;
}

bool finish_unless(bool (*stop)(), const std::function<void()>& work) {
  struct Scope {
    bool (*before)();
    ~Scope() { stop_when = before; }
  } const scope{std::exchange(stop_when, stop)};
  try {
    work();
    return true;
  } catch (const Stopped&) {
    return false;
  }
}

void check_stop() {
  if (stop_when && stop_when()) throw Stopped();
}

void parallel_chunks(int64_t n, int64_t grain, ChunkFunction call, const void* body) {
  if (n <= 0) return;
  check_stop();
  if (is_dry_run()) return;
  grain = std::max<int64_t>(1, grain);
  const int64_t chunks = (n + grain - 1) / grain;
  const int count = inside ? 1 : static_cast<int>(std::min<int64_t>(thread_count(), chunks));
  if (count > 1) {
    Work work(n, grain, call, body, count);
    if (pool().run(work, count - 1)) {
      if (work.error) std::rethrow_exception(work.error);
      return;
    }
  }
  for (int64_t begin = 0; begin < n; begin += grain) call(body, begin, std::min(n, begin + grain));
}

}  // namespace ricci
