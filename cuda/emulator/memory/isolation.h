// Blocks that do not see each other, for finding races between them: each begins with device memory as it was before the
// launch. What another block writes is seen when an atomic wrote it, or when its writer has passed a __threadfence since;
// everything else becomes visible when the launch ends. CUDA's memory model allows hardware to do the same. Two blocks
// that change the same byte otherwise than by atomics, without a fence between them, are an error. A block that reads
// what another one has written computes with the old value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace emu {

class Isolation {
 public:
  Isolation();  // device memory is as it was before the launch

  // An atomic operation of the block that runs. The pointer may be to any memory.
  void atomic(const void* p, size_t bytes);
  void fence();
  // It has ended: takes its writes away until the launch ends. Says what it wrote that another block wrote too.
  struct Race {
    uint64_t other_block = 0;
    size_t byte = 0, bytes = 0;  // byte of an allocation of so many bytes, 0: no race
  };
  Race end_block(uint64_t block);
  void end_launch();

 private:
  static constexpr uint32_t kNobody = 0;
  struct Region {
    unsigned char* data;
    size_t bytes;
    std::vector<unsigned char> before, after;  // before the launch; after it, from the first write on
    std::vector<uint32_t> writer;              // for each byte: 1 + the block that wrote it
  };
  void show_to_all(Region& region, size_t i);
  void note_race(const Region& region, size_t i);
  template <class F> static void for_changed_bytes(const Region& region, F f);
  std::vector<Region> regions_;
  std::unordered_set<uintptr_t> atomic_words_;  // addresses / 4
  Race race_;                                   // the first of the block that runs
};

// The isolation of the launch that this OS thread runs; null when its blocks are not isolated.
extern constinit thread_local Isolation* isolation;

}  // namespace emu
