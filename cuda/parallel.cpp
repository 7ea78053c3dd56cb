// OpenMP runs the chunks; the ThreadSanitizer build uses threads of its own, because libgomp's barriers are invisible to
// that tool and would be reported as races.
#include "cuda/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.h"

#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
#include <omp.h>
#define RICCI_OPENMP 1
#else
#define RICCI_OPENMP 0
#endif

namespace ricci {
namespace {

int default_threads() {
#if RICCI_OPENMP
  return omp_get_max_threads();
#else
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

std::atomic<int>& threads() {
  static std::atomic<int> count{default_threads()};
  return count;
}

thread_local bool inside = false;  // a parallel_for within a parallel_for runs in its own thread

// The chunks of one call, handed out in order to whichever thread asks.
struct Work {
  int64_t n, grain;
  ChunkFunction call;
  const void* body;
  std::atomic<int64_t> next{0};
  std::mutex mutex{};
  std::exception_ptr error{};

  void run() {
    inside = true;
    for (int64_t begin; (begin = next.fetch_add(grain, std::memory_order_relaxed)) < n;) {
      try {
        call(body, begin, std::min(n, begin + grain));
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = n;
      }
    }
    inside = false;
  }
};

void run_on_threads(Work& work, int count) {
#if RICCI_OPENMP
#pragma omp parallel num_threads(count)
  work.run();
#else
  std::vector<std::thread> others;
  for (int i = 1; i < count; ++i) others.emplace_back([&] { work.run(); });
  work.run();
  for (std::thread& thread : others) thread.join();
#endif
}

}  // namespace

int thread_count() { return threads(); }

void set_thread_count(int count) {
  if (count < 1) fail("threads: expected at least 1, got {}", {count});
  threads() = count;
#if RICCI_OPENMP
  omp_set_num_threads(count);
#endif
}

void parallel_chunks(int64_t n, int64_t grain, ChunkFunction call, const void* body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(1, grain);
  const int64_t chunks = (n + grain - 1) / grain;
  const int count = inside ? 1 : static_cast<int>(std::min<int64_t>(thread_count(), chunks));
  if (count == 1) {
    for (int64_t begin = 0; begin < n; begin += grain) call(body, begin, std::min(n, begin + grain));
    return;
  }
  Work work{n, grain, call, body};
  run_on_threads(work, count);
  if (work.error) std::rethrow_exception(work.error);
}

}  // namespace ricci
