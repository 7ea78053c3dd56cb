// The functions of cuda/ptx.h for the emulator, documented there. The emulator reports mistakes that make a GPU silently compute wrong
// numbers:
//   an address that is misaligned, or in the wrong memory: ldmatrix and the target of cp_async need shared memory, the source of cp_async
//   needs device memory, and store16_whole must not write to shared memory;
//   a return before the wait for all copies.
// The destination of a copy holds NaN until the wait for the copy. On a GPU, the data can arrive that late.
#pragma once
#include "core/dtype.h"
#include "cuda/emulator/emulator.h"
#include "cuda/emulator/instructions/wgmma.h"

namespace emu {

void mma_bf16(float* c, const uint32_t* a, const uint32_t* b, Loc loc);
void ldmatrix(const char* name, int matrices, bool transposed, uint32_t* r, const void* row, Loc loc);

void begin_copy(void* shared, const void* global, int bytes, int source_bytes, Loc loc);
void commit_copies();
void wait_for_copies(unsigned groups_left);
void wait_for_all_copies();

unsigned shared_address(const void* p, Loc loc);  // bytes from the beginning of the block's shared memory
void fence_proxy_async();
void wgmma_fence(const Registers& first, const Registers& second, Loc loc);
void wgmma(float* d, unsigned columns, const uint32_t* a, uint64_t left, uint64_t right, bool transposed, bool accumulate, Loc loc);
void wgmma_commit(Loc loc);
void wgmma_wait(unsigned groups_left, const Registers& d, Loc loc);

void check_aligned(const char* what, const void* p, unsigned bytes, Loc loc);
void check_not_shared(const char* what, const void* p, Loc loc);

}  // namespace emu

namespace ricci::ptx {

using emu::Loc;

inline void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Loc loc = {}) { emu::mma_bf16(c, a, b, loc); }
inline uint32_t pack_bf16(float low, float high) { return bf16(low).bits | static_cast<uint32_t>(bf16(high).bits) << 16; }

// The GPU's approximations have errors in the last bits. The emulator's results also have errors: two units in the last place, up or down
// according to the argument's last bit.
inline float off_by_two(float y, float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, y), of_x = __builtin_bit_cast(uint32_t, x);
  const bool exact = !(y > 0x1p-125f && y < 0x1p127f) || (bits & 0x7fffffu) == 0;  // 0, infinity, NaN, a power of two
  const uint32_t wrong = of_x & 1 ? bits + 2 : bits - 2;
  return exact ? y : __builtin_bit_cast(float, wrong);
}
inline float exp2_approx(float x) { return x < -126 ? 0.0f : off_by_two(__builtin_exp2f(x), x); }
inline float reciprocal_approx(float x) {
  const float size = __builtin_fabsf(x), y = off_by_two(1 / (size < 0x1p-126f ? 0 : size), x);
  return __builtin_copysignf(y < 0x1p-126f ? 0 : y, x);
}

template <int N> void ldmatrix(uint32_t (&r)[N], const void* row, Loc loc = {}) {
  static_assert(N == 1 || N == 2 || N == 4);
  constexpr const char* kNames[] = {"", "ldmatrix<1>", "ldmatrix<2>", "", "ldmatrix<4>"};
  emu::ldmatrix(kNames[N], N, false, r, row, loc);
}
template <int N> void ldmatrix_trans(uint32_t (&r)[N], const void* row, Loc loc = {}) {
  static_assert(N == 1 || N == 2 || N == 4);
  constexpr const char* kNames[] = {"", "ldmatrix_trans<1>", "ldmatrix_trans<2>", "", "ldmatrix_trans<4>"};
  emu::ldmatrix(kNames[N], N, true, r, row, loc);
}

template <int N> void cp_async(void* shared, const void* global, int source_bytes = N, Loc loc = {}) {
  static_assert(N == 4 || N == 8 || N == 16);
  emu::begin_copy(shared, global, N, source_bytes, loc);
}
inline void cp_async_commit() { emu::commit_copies(); }
template <int n> void cp_async_wait() { emu::wait_for_copies(n); }
inline void cp_async_wait_all() { emu::wait_for_all_copies(); }

inline void fence_proxy_async() { emu::fence_proxy_async(); }
inline Descriptor descriptor(const void* shared, int leading, int stride, Loc loc = {}) {
  return descriptor_of(emu::shared_address(shared, loc), leading, stride);
}
inline void wgmma_fence(Loc loc = {}) { emu::wgmma_fence({}, {}, loc); }
template <class A> void wgmma_fence(A& registers, Loc loc = {}) { emu::wgmma_fence({&registers, sizeof registers}, {}, loc); }
template <class A, class B> void wgmma_fence(A& first, B& second, Loc loc = {}) {
  emu::wgmma_fence({&first, sizeof first}, {&second, sizeof second}, loc);
}
template <bool transposed, bool accumulate, int tiles>
void wgmma_bf16(float (&d)[tiles][4], const uint32_t (&a)[4], Descriptor b, Loc loc = {}) {
  static_assert(tiles == 8 || tiles == 16);
  emu::wgmma(d[0], tiles * 8, a, 0, b.bits, transposed, accumulate, loc);
}
template <bool transposed, bool accumulate, int tiles> void wgmma_bf16(float (&d)[tiles][4], Descriptor a, Descriptor b, Loc loc = {}) {
  static_assert(tiles == 8);
  emu::wgmma(d[0], tiles * 8, nullptr, a.bits, b.bits, transposed, accumulate, loc);
}
inline void wgmma_commit(Loc loc = {}) { emu::wgmma_commit(loc); }
template <int n, class D> void wgmma_wait(D& d, Loc loc = {}) { emu::wgmma_wait(n, {&d, sizeof d}, loc); }

inline uint4 load16(const void* p, Loc loc = {}) {
  emu::check_aligned("load16", p, 16, loc);
  return *static_cast<const uint4*>(p);
}
inline void store16(void* p, uint4 value, Loc loc = {}) {
  emu::check_aligned("store16", p, 16, loc);
  *static_cast<uint4*>(p) = value;
}
inline void store16_whole(void* global, uint4 value, Loc loc = {}) {
  emu::check_aligned("store16_whole", global, 16, loc);
  emu::check_not_shared("store16_whole", global, loc);
  *static_cast<uint4*>(global) = value;
}
}  // namespace ricci::ptx
