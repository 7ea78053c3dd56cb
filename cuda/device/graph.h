// A CUDA graph: launches are recorded once and then put on the stream in one call. Launching many short kernels one by one takes longer
// than running them.
//   Graph graph(device);
//   graph.measure(work);       runs the work and measures the memory that the work requests
//   graph.record(work);        records its launches without running them
//   graph.launch();            runs them, any number of times
// A launch uses the addresses and numbers that each kernel was recorded with, so the work must do the same each time. Allocate its inputs
// before measure(), and overwrite them between launches. Tensors made by record() are in one block that the graph owns, at offsets found by
// measure(). They hold the values of the last launch, and nothing else uses that memory. Stream-ordered allocations are not recorded. They
// would belong to the graph's launches, and tensors that outlive a launch would be freed twice. Run the work once before measure(), to load
// and allocate everything that is made on first use.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "core/tensor.h"

namespace ricci {

// Offsets of tensors in one block of memory. Tensors that are made and freed in the same order again get the same offsets. Offsets are only
// numbers; the block itself belongs to the caller.
class OffsetHeap {
 public:
  static constexpr int64_t kAlign = 512;  // bytes, as for cudaMalloc

  // The offset for this size: the smallest hole that is large enough, or the end.
  int64_t allocate(int64_t bytes);
  void release(int64_t offset);  // error: nothing was allocated there

  int64_t extent() const { return extent_; }  // the bytes that the block needs
  bool empty() const { return used_.empty(); }

 private:
  std::map<int64_t, int64_t> used_, holes_;  // bytes at an offset; no hole is adjacent to another or to the end
  int64_t end_ = 0, extent_ = 0;
};

class Graph {
 public:
  explicit Graph(Device device);  // errors: `device` is the cpu, the device is not available
  ~Graph();                       // its block is freed with the last tensor in it
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void measure(const std::function<void()>& work);
  // Errors: nothing was measured, the graph is already recorded, the work reads or writes on the CPU, the work needs more memory than was
  // measured. After an error, nothing is recorded.
  void record(const std::function<void()>& work);
  // Launches on the current stream. Error: nothing is recorded.
  void launch() const;

  int64_t bytes() const { return plan_.extent(); }

 private:
  Device device_;
  OffsetHeap plan_;
  bool measured_ = false;
  void* graph_ = nullptr;             // a handle of the device
  std::shared_ptr<void> block_ = {};  // see graph.cpp
};

// True while this OS thread is recording.
bool recording_graph();

}  // namespace ricci
