// bf16 storage: the upper half of an f32, rounded to nearest even. Arithmetic happens in f32.
#pragma once
#include <cstdint>

#include "core/host_device.h"

namespace ricci {

struct bf16 {
  uint16_t bits;

  bf16() = default;
  HD explicit bf16(float value) {
#ifdef __CUDA_ARCH__  // one instruction
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    uint32_t u;
    __builtin_memcpy(&u, &value, sizeof u);
    const uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? 0x7fc0u : rounded);
#endif
  }
  HD operator float() const {
    const uint32_t u = static_cast<uint32_t>(bits) << 16;
    float value;
    __builtin_memcpy(&value, &u, sizeof value);
    return value;
  }
};

}  // namespace ricci
