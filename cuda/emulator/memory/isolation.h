// Blocks that do not see each other, for finding races between them: each begins with device memory as it was before the
// launch. What another block writes is seen when an atomic wrote it, or when its writer has passed a __threadfence since;
// everything else becomes visible when the launch ends. CUDA's memory model allows hardware to do the same. Two blocks
// that change the same byte are an error, unless both do it by atomics, or the first has passed a fence since and the second
// has been at an atomic after others, as with a lock or a counter of finished blocks. A block that reads what another one has written
// computes with the old value. Two blocks that write one word and change different bytes of it are not found here; ThreadSanitizer finds
// them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace emu {

class Isolation {
 public:
  Isolation();  // device memory is as it was before the launch

  void begin_block(uint64_t block);
  // An atomic operation of the block that runs. The pointer may be to any memory.
  void atomic(const void* p, size_t bytes);
  void fence();
  // The block has ended: takes its writes away until the launch ends. Returns a write that another block made too.
  struct Race {
    uint64_t other_block = 0;
    size_t byte = 0, bytes = 0;  // the first byte in an allocation of `bytes` bytes; bytes is 0 without a race
  };
  Race end_block();
  void end_launch();
  bool was_written(const unsigned char* data, size_t bytes) const;  // by any block so far

 private:
  static constexpr uint32_t kNobody = 0;
  struct Region {
    unsigned char* data;
    size_t bytes;
    std::vector<unsigned char> before, after;  // before the launch; after it, from the first write on
    std::vector<uint32_t> writer, fenced;      // for each byte: 1 + the block that wrote it, and whose fence has shown it
  };
  void show_to_all(Region& region, size_t i);
  void note_race(const Region& region, size_t i, uint32_t other);
  void note_unordered(const Region& region, size_t i);
  static void keep_writers(Region& region);
  template <class F> static void for_changed_bytes(const Region& region, F f);
  std::vector<Region> regions_;
  std::unordered_map<uintptr_t, uint32_t> atomic_words_;  // addresses / 4: 1 + the last block that was there with an atomic
  std::unordered_set<uintptr_t> own_words_;               // the running block changed them by atomics
  bool ordered_ = false;                                  // it was at an atomic after another block
  uint32_t block_ = kNobody;                              // 1 + the block that runs
  Race race_;                                             // its first
};

// The isolation of the launch that this OS thread runs; null when its blocks are not isolated.
extern constinit thread_local Isolation* isolation;

}  // namespace emu
