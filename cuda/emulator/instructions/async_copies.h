// The asynchronous copies of one CUDA thread: they arrive when it waits for them, not before.
#pragma once
#include <cstddef>
#include <vector>

#include "cuda/emulator/emulator.h"

namespace emu {

class AsyncCopies {
 public:
  void begin(void* to, const void* from, size_t bytes, size_t source_bytes, Loc at);
  void commit() { ++groups_; }
  void wait(unsigned groups_left);
  void wait_for_all() { arrive(groups_ + 1); }

  const Loc* under_way() const { return copies_.empty() ? nullptr : &copies_.front().at; }
  void forget() {
    copies_.clear();
    groups_ = 0;
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes, source_bytes;
    unsigned group;  // how many were closed before it
    Loc at;
  };
  void arrive(unsigned groups);  // of the first so many groups
  std::vector<Copy> copies_;     // in the order in which they were begun
  unsigned groups_ = 0;          // closed
};

}  // namespace emu
