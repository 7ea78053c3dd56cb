// Working memory of one chunk of a parallel loop on the CPU. It comes from the allocator of tensors and is not counted among them:
// how many chunks run at one time differs from run to run, and what memory_use tells must not.
//   parallel_for(n, grain, [&](int64_t begin, int64_t end) {
//     const Scratch<float> row(width);
//     ... row.data()[i] ...
//   });
#pragma once
#include <cstdint>

#include "core/error.h"
#include "core/memory/memory.h"
#include "core/memory/memory_report.h"

namespace ricci {

template <class T> class Scratch {
 public:
  // Error: no memory left. The values are not set.
  explicit Scratch(int64_t size) : bytes_(size * static_cast<int64_t>(sizeof(T))), data_(allocator_of(Device::cpu).allocate(bytes_)) {
    if (!data_ && bytes_ > 0) fail("{}", {out_of_memory(bytes_, Device::cpu, {})});
  }
  ~Scratch() { allocator_of(Device::cpu).release(data_, bytes_); }
  Scratch(const Scratch&) = delete;

  T* data() const { return static_cast<T*>(data_); }

 private:
  int64_t bytes_;
  void* data_;
};

}  // namespace ricci
