// RICCI_TRACE=1: where the time goes. Every moment of the thread that computes is charged to the op that ends it, so that the
// lines add up to the whole; the table is printed to stderr when the program ends:
//   op   calls   ms   share   ms per call   GFLOP/s   of the peak   GB/s
// FLOPs are counted for matrix products, attention and shift-and-sum; bytes for an op's inputs and outputs. The peaks are measured
// (cuda/peaks.h): the GPU's where ops ran on one, for the dtype of the last product. While a CUDA graph is recorded, ops are
// counted and not waited for; the time of its launches is charged to `graph`.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/tensor.h"

namespace ricci::trace {

extern bool enabled;  // by RICCI_TRACE, or while a Counter or Timer lives

struct Work {
  int64_t calls = 0;
  double flops = 0, bytes = 0, seconds = 0;
};

// Counts the work of ops while it lives, whether RICCI_TRACE is set or not, and waits for no device: the seconds mean nothing. Nothing is
// printed. Error: another one, or a Timer, is alive.
class Counter {
 public:
  Counter() : Counter(false) {}
  ~Counter();
  Counter(const Counter&) = delete;
  const std::map<std::string, Work>& work() const;  // by op, since the beginning or trace::restart()

 protected:
  explicit Counter(bool timed);
};

// The same, with seconds by the rule above.
class Timer : public Counter {
 public:
  Timer() : Counter(true) {}
};

// The op, or part of a step, that ends now; waits for the device. `part` is the half of it: "" or "backward".
void end_of(const char* op, const char* part, Device device, int64_t bytes);

// Forgets everything so far: memory that is touched for the first time costs many times what it costs later. ricci-train
// calls it after its first two steps.
void restart();

// Work done since the last end_of.
void count_flops(double flops);
void count_flops(double flops, Dtype dtype);

inline void end(const char* op, const char* part = "", Device device = Device::cpu, int64_t bytes = 0) {
  if (enabled) end_of(op, part, device, bytes);
}
inline void flops(double flops) {
  if (enabled) count_flops(flops);
}
// The same for a product, whose dtype selects the peak that the table compares with.
inline void flops(double flops, Dtype dtype) {
  if (enabled) count_flops(flops, dtype);
}

}  // namespace ricci::trace
