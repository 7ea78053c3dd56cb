// CPU memory for tensors: blocks are cut from huge-page slabs and kept for reuse, so that a training step after the
// first touches no fresh page. (A fresh GiB costs seven times more in page faults on small pages than on huge ones.)
#pragma once
#include <vector>

#include "core/memory/memory.h"

namespace ricci {

Allocator& cpu_arena();

// Counts the memory that the arena would touch for the same requests: freed blocks wait for a request of their size, and small ones are
// cut from slabs, which are touched in whole huge pages.
class ArenaCounter {
 public:
  int64_t allocate(int64_t bytes);                 // returns the number that release() takes as `allocated`
  void release(int64_t bytes, int64_t allocated);  // both as at the request
  int64_t touched() const { return touched_; }

 private:
  std::vector<int64_t> free_[256];  // by size class: of each block the bytes that were touched
  int64_t touched_ = 0;
  int64_t left_ = 0;  // bytes of the newest slab that no block has
};

}  // namespace ricci
