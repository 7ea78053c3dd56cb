// The asynchronous copies of one CUDA thread (cp_async). The copies arrive only when the thread waits for them, at the latest time that a
// GPU allows.
#pragma once
#include <cstddef>
#include <vector>

#include "cuda/emulator/emulator.h"

namespace emu {

class AsyncCopies {
 public:
  void begin(void* target, const void* source, size_t bytes, size_t source_bytes, Loc loc);
  void commit() { ++groups_; }
  void wait(unsigned groups_left);
  void wait_for_all() { arrive(groups_ + 1); }

  const Loc* under_way() const { return copies_.empty() ? nullptr : &copies_.front().loc; }
  void forget() {
    copies_.clear();
    groups_ = 0;
  }

 private:
  struct Copy {
    void* target;
    const void* source;
    size_t bytes, source_bytes;
    unsigned group;  // number of groups closed before this copy
    Loc loc;
  };
  void arrive(unsigned groups);  // completes the copies of the first `groups` groups
  std::vector<Copy> copies_;     // in starting order
  unsigned groups_ = 0;          // number of closed groups
};

}  // namespace emu
