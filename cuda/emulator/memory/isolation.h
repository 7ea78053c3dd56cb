// Finds races between blocks by hiding their writes: each block starts with device memory as it was before the launch. Another block's
// write is visible only if it was an atomic, or if the writer has passed a __threadfence since. All other writes become visible when the
// launch ends. CUDA's memory model allows hardware to do the same. It is an error if two blocks change the same byte, except in two cases:
// both use atomics; or the first block has passed a fence since, and the second has done an atomic after other blocks, as with a lock or a
// counter of finished blocks. A block reads the old value of a byte written by another block. Only ThreadSanitizer detects two blocks that
// change different bytes of one word.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace emu {

class Isolation {
 public:
  Isolation();  // device memory must be as it was before the launch

  void begin_block(uint64_t block);
  // Called at an atomic operation of the running block, on any memory.
  void atomic(const void* p, size_t bytes);
  void fence();
  // Called when the block has ended: hides its writes until the launch ends. Returns a byte that a different block also wrote.
  struct Race {
    uint64_t other_block = 0;
    size_t byte = 0, bytes = 0;  // the first byte in an allocation of `bytes` bytes; bytes is 0 without a race
  };
  Race end_block();
  void end_launch();

 private:
  static constexpr uint32_t kNobody = 0;
  struct Region {
    unsigned char* data;
    size_t bytes;
    std::vector<unsigned char> before, after;  // bytes before the launch; bytes after it, kept from the first write on
    std::vector<uint32_t> writer, fenced;      // for each byte, 1 + the block that wrote it, and 1 + the block that showed it by a fence
  };
  void show_to_all(Region& region, size_t i);
  void note_race(const Region& region, size_t i, uint32_t other);
  void note_unordered(const Region& region, size_t i);
  static void keep_writers(Region& region);
  template <class F> static void for_changed_bytes(const Region& region, F f);
  std::vector<Region> regions_;
  std::unordered_map<uintptr_t, uint32_t> atomic_words_;  // addresses / 4: 1 + the last block with an atomic there
  std::unordered_set<uintptr_t> own_words_;               // words that the running block changed by atomics
  bool ordered_ = false;                                  // true if the block has done an atomic after a different block
  uint32_t block_ = kNobody;                              // 1 + the running block
  Race race_;                                             // the first race
};

// The isolation of the launch on this OS thread; null if its blocks are not isolated.
extern constinit thread_local Isolation* isolation;

}  // namespace emu
