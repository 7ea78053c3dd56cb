// A CUDA graph: launches that are recorded once and then put on the stream in one call, for work of many short kernels.
//   Graph graph(device);
//   graph.measure(work);       runs it, and notes what memory it asks for
//   graph.record(work);        notes down its launches, which do not run
//   graph.launch();            runs them, as often as you like
// A launch repeats every address and every number that a kernel was given. So the work must do the same each time: what
// differs is in tensors that were made before, which are overwritten between launches. Tensors made by record() are in one block that the
// graph owns, at places that measure() has found, and hold what the last launch wrote; nothing else of the program can get that memory.
// Ordinary stream-ordered allocations were not recorded instead: their memory belongs to the graph's launches, and tensors that outlive a
// launch would be freed twice.
// Run the work once before measure(): what is loaded and allocated on first use must not be part of it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "core/tensor.h"

namespace ricci {

// Places in one block of memory: where a tensor is when the same tensors come and go in the same order every time. These are only numbers:
// the block itself belongs to the caller.
class OffsetHeap {
 public:
  static constexpr int64_t kAlign = 512;  // bytes, as for cudaMalloc

  // The offset of a place of that size: the smallest hole that is large enough, or the end.
  int64_t allocate(int64_t bytes);
  void release(int64_t offset);  // error: nothing was allocated there

  int64_t extent() const { return extent_; }  // bytes that the block must have
  bool empty() const { return used_.empty(); }

 private:
  std::map<int64_t, int64_t> used_, holes_;  // bytes at an offset; no two holes touch, and none touches the end
  int64_t end_ = 0, extent_ = 0;
};

class Graph {
 public:
  explicit Graph(Device device);  // error: the cpu has no graphs, device not available
  ~Graph();                       // its block goes when the last tensor in it does
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void measure(const std::function<void()>& work);
  // Errors: nothing was measured, something is recorded already, the work reads or writes on the CPU, or asks for more
  // memory than it did then. After an error nothing is recorded.
  void record(const std::function<void()>& work);
  // On the current stream. Error: nothing is recorded.
  void launch() const;

  int64_t bytes() const { return plan_.extent(); }  // the size of the block

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
