// parallel_for(n, grain, body) calls body(begin, end) for chunks of `grain` indices that cover [0, n), on all CPU threads. For any number
// of threads, each chunk begins at a multiple of the grain, so sums are rounded identically on every machine.
#pragma once
#include <cstdint>
#include <functional>

namespace ricci {

// OMP_NUM_THREADS if it is set, else available_processors() (core/cpu/available.h).
int thread_count();
void set_thread_count(int threads);  // error: `threads` is less than 1

// Calls work(), and returns true if it finished. Each parallel_for in it, on this thread, first calls stop(). Once stop() returns true, an
// exception ends work(), so a long computation is cancelled within the time of one op. With a null stop, work() always finishes.
bool finish_unless(bool (*stop)(), const std::function<void()>& work);
void check_stop();  // calls the stop() of the innermost finish_unless, for work that calls no parallel_for

// If multiple chunks throw, the caller gets the exception of the first one in index order, for any number of threads. Later chunks might
// not run.
using ChunkFunction = void (*)(const void* body, int64_t begin, int64_t end);
void parallel_chunks(int64_t n, int64_t grain, ChunkFunction call, const void* body);

template <class Body> void parallel_for(int64_t n, int64_t grain, const Body& body) {
  parallel_chunks(
      n, grain, [](const void* b, int64_t begin, int64_t end) { (*static_cast<const Body*>(b))(begin, end); }, &body);
}

}  // namespace ricci
