// RICCI_TRACE=1 prints a table of the time of each op to stderr when the program ends. The time between two ops is added to the second, so
// the lines add up to the total:
//   op   calls   ms   share   ms per call   GFLOP/s   of the peak   GB/s
// FLOPs are counted for matrix products, attention and shift-and-sum; bytes for an op's inputs and outputs. The peaks are measured
// (cuda/peaks.h), on the GPU if ops ran on one, for the dtype of the last product. While a CUDA graph is recorded, ops are counted without
// waiting; the time of the graph's launches is in the line `graph`.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/tensor.h"

namespace ricci::trace {

extern bool enabled;  // true with RICCI_TRACE, or while a Counter exists

struct Work {
  int64_t calls = 0;
  double flops = 0, bytes = 0, seconds = 0;
};

// Counts the work of ops while it exists, with or without RICCI_TRACE, and prints nothing. Only a timed Counter waits for devices and
// counts seconds, by the rule above. Error: a Counter already exists.
class Counter {
 public:
  explicit Counter(bool timed = false);
  ~Counter();
  Counter(const Counter&) = delete;
  const std::map<std::string, Work>& work() const;  // for each op, since the start or trace::restart()
};

// Called when an op, or a part of a step, ends; waits for the device. `part` is "" for the forward pass, or "backward".
void end_of(const char* op, const char* part, Device device, int64_t bytes);

// Discards everything recorded so far. ricci train calls it after its first two steps: touching memory for the first time is much slower.
void restart();

// Counts work done since the last end_of.
void count_flops(double flops);
void count_flops(double flops, Dtype dtype);

inline void end(const char* op, const char* part = "", Device device = Device::cpu, int64_t bytes = 0) {
  if (enabled) end_of(op, part, device, bytes);
}
inline void flops(double flops) {
  if (enabled) count_flops(flops);
}
// Counts a product: its dtype selects the peak of the table.
inline void flops(double flops, Dtype dtype) {
  if (enabled) count_flops(flops, dtype);
}

}  // namespace ricci::trace
