// Working memory of one chunk of a parallel loop on the CPU. The tensors' allocator provides it, but it is not counted. The number of
// chunks that run at the same time varies from run to run, and memory_use must not vary.
//   parallel_for_with_scratch(n, grain, [&](int64_t begin, int64_t end) {
//     const Scratch<float> row(width);
//     ... row.data()[i] ...
//   });
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "core/memory/memory.h"

namespace ricci {

// A parallel_for for bodies that begin with their Scratch. A dry run calls the body with an empty range, to count the Scratch.
template <class Body> void parallel_for_with_scratch(int64_t n, int64_t grain, const Body& body) {
  if (!is_dry_run()) return parallel_for(n, grain, body);
  dry_run_state::threads = std::min<int64_t>(thread_count(), (n + grain - 1) / grain);
  if (n > 0) body(0, 0);
}

template <class T> class Scratch {
 public:
  // The values are not initialized. A dry run has no values. Error: no memory is left.
  explicit Scratch(int64_t size) : bytes_(size * static_cast<int64_t>(sizeof(T))) {
    const int64_t counted = is_dry_run() ? dry_run_state::threads : 0;
    for (int64_t i = 0; i < counted; ++i) counted_.push_back(dry_run_state::count(bytes_));
    if (counted > 0) return;
    data_ = allocator_of(Device::cpu).allocate(bytes_);
    if (!data_ && bytes_ > 0) fail("{}", {out_of_memory(bytes_, Device::cpu, {})});
  }
  ~Scratch() {
    for (const int64_t counted : counted_) dry_run_state::release(nullptr, bytes_, counted);
    if (counted_.empty()) allocator_of(Device::cpu).release(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;

  T* data() const { return static_cast<T*>(data_); }

 private:
  int64_t bytes_;
  void* data_ = nullptr;
  std::vector<int64_t> counted_ = {};  // in a dry run: a block for each thread that would work
};

}  // namespace ricci
