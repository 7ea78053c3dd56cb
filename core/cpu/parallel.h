// The one door to CPU threads: parallel_for(n, grain, body) calls body(begin, end) for the chunks of `grain` that make
// up [0, n). Where chunks begin does not depend on the number of threads, so neither do the results.
#pragma once
#include <cstdint>
#include <exception>

namespace ricci {

// The number of threads that OMP_NUM_THREADS asks for; else available_processors() (core/cpu/available.h).
int thread_count();
void set_thread_count(int threads);  // error: less than 1

// Thrown in place of work that is no longer wanted.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

// While alive, every parallel_for that this thread begins first asks stop(), and throws Stopped where the answer is true: a long
// computation that changes nothing, such as an evaluation, can so be given up within the time of one op.
class StopWhen {
 public:
  explicit StopWhen(bool (*stop)());
  ~StopWhen();
  StopWhen(const StopWhen&) = delete;

 private:
  bool (*before_)();  // what this thread asked until now
};

// Called with [begin, end) on one of the threads. If chunks throw, the caller of parallel_for gets the exception of the first of them, and
// the chunks after it may not run. Thus the exception does not depend on the threads.
using ChunkFunction = void (*)(const void* body, int64_t begin, int64_t end);
void parallel_chunks(int64_t n, int64_t grain, ChunkFunction call, const void* body);

template <class Body> void parallel_for(int64_t n, int64_t grain, const Body& body) {
  parallel_chunks(
      n, grain, [](const void* b, int64_t begin, int64_t end) { (*static_cast<const Body*>(b))(begin, end); }, &body);
}

}  // namespace ricci
