// Places in one block of memory: where a tensor lies when the same tensors come and go in the same order every time. Only
// numbers: the block itself is somebody else's.
#pragma once
#include <cstdint>
#include <map>

namespace ricci {

class OffsetHeap {
 public:
  static constexpr int64_t kAlign = 512;  // bytes, as of cudaMalloc

  // The offset of a place for so many bytes: the smallest hole that is large enough, or the end.
  int64_t allocate(int64_t bytes);
  void release(int64_t offset);  // error: nothing lies there

  int64_t extent() const { return extent_; }  // bytes that the block must have
  bool empty() const { return used_.empty(); }

 private:
  std::map<int64_t, int64_t> used_, holes_;  // bytes at an offset; no two holes touch, and none touches the end
  int64_t end_ = 0, extent_ = 0;
};

}  // namespace ricci
