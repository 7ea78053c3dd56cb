// Read-only loads, __ldg and load16_once (ld.global.nc): the GPU may take them from a cache that does not see what the launch
// writes. So the launch must not write those bytes at all. The values are compared when it ends: bytes that were written after
// they had been loaded are an error. A write before the load shows in another order of the blocks, or with isolated blocks
// (isolation.h), where every byte that the launch changed is known.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include "cuda/emulator/emulator.h"

namespace emu {

// The records of one launch.
class ReadOnlyLoads {
 public:
  explicit ReadOnlyLoads(const Launch& launch) : launch_(launch) {}
  ~ReadOnlyLoads();
  ReadOnlyLoads(const ReadOnlyLoads&) = delete;
  ReadOnlyLoads& operator=(const ReadOnlyLoads&) = delete;

  // Error: bytes that were loaded so have changed since, or `written` is true of them.
  void check(const std::function<bool(const unsigned char* data, size_t bytes)>& written) const;

 private:
  const Launch& launch_;
};

}  // namespace emu
