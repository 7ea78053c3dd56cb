// The red zones next to each object of device and shared memory. Their bytes are a NaN in every floating-point type, so a read past the end
// gives NaN. Ordinary numbers do not have these bytes, so a write is detected.
#pragma once
#include <cstddef>

namespace emu {

constexpr unsigned char red(size_t i) { return i % 2 ? 0x7f : 0xf5; }

inline void fill_red_zone(unsigned char* zone, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) zone[i] = red(i);
}

// The first changed byte; `bytes` if none was changed.
inline size_t find_written(const unsigned char* zone, size_t bytes) {
  size_t i = 0;
  while (i < bytes && zone[i] == red(i)) ++i;
  return i;
}

}  // namespace emu
