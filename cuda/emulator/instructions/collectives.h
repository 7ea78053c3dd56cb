// CUDA's device functions for the emulator: barriers, warp collectives, atomics, bits. Included by emulator.h.
#pragma once
#include <type_traits>

#include "cuda/emulator/emulator.h"

namespace emu {

// ---- parts of the functions below; wrapped instructions (mma, ldmatrix) also use `collective`

// Computes a collective for all lanes together: payloads[l] is the payload that lane l passed to `collective`.
using Resolve = void (*)(void* const* payloads, unsigned lanes);

// The calling lane waits until every lane of the mask has arrived with the same mask and resolve; the last one to arrive
// calls resolve. The payload is usually on the caller's stack and receives the result. `name` is for messages.
void collective(const char* name, unsigned mask, void* payload, Resolve resolve, Loc loc);

// Ends the launch with "kernel: thread, block: what at line".
[[noreturn]] void fail_thread(const char* what, Loc loc);

unsigned lane();
void barrier(Loc loc);
void poll();  // lets all other threads of the block run first
void fence();
inline constinit thread_local bool isolated = false;  // true if blocks do not see each other's writes (isolation.h)
void note_atomic(const void* p, size_t bytes);
void show_writes_to_all_blocks();

enum class Shuffle : uint8_t { index, up, down, exclusive_or };
uint64_t shuffle(Shuffle kind, unsigned mask, uint64_t value, unsigned argument, int width, Loc loc);
unsigned ballot(const char* name, unsigned mask, bool predicate, Loc loc);
unsigned match(unsigned mask, uint64_t value, Loc loc);

template <class T> uint64_t to_bits(T value) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "CUDA exchanges 32 and 64 bit numbers");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T> T from_bits(uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// ---- block and warp barriers, fences. The default Loc is the line of the caller.

inline void __syncthreads(Loc loc = {}) { barrier(loc); }
void __syncwarp(unsigned mask = ~0u, Loc loc = {});
inline void __threadfence() {
  fence();
  if (isolated) show_writes_to_all_blocks();
}
inline void __nanosleep(unsigned) { poll(); }
[[noreturn]] inline void __trap(Loc loc = {}) { fail_thread("__trap", loc); }

// ---- warp collectives. Values of types smaller than int are exchanged as int, as in CUDA.

template <class T> auto exchange(Shuffle kind, unsigned mask, T value, unsigned argument, int width, Loc loc) {
  return from_bits<T>(shuffle(kind, mask, to_bits(value), argument, width, loc));
}
template <class T> auto __shfl_sync(unsigned mask, T value, int source, int width = 32, Loc loc = {}) {
  return exchange(Shuffle::index, mask, +value, static_cast<unsigned>(source), width, loc);
}
template <class T> auto __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, Loc loc = {}) {
  return exchange(Shuffle::up, mask, +value, by, width, loc);
}
template <class T> auto __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, Loc loc = {}) {
  return exchange(Shuffle::down, mask, +value, by, width, loc);
}
template <class T> auto __shfl_xor_sync(unsigned mask, T value, int by, int width = 32, Loc loc = {}) {
  return exchange(Shuffle::exclusive_or, mask, +value, static_cast<unsigned>(by), width, loc);
}

inline unsigned __ballot_sync(unsigned mask, int p, Loc loc = {}) { return ballot("__ballot_sync", mask, p != 0, loc); }
inline int __any_sync(unsigned mask, int p, Loc loc = {}) { return ballot("__any_sync", mask, p != 0, loc) != 0; }
inline int __all_sync(unsigned mask, int p, Loc loc = {}) { return ballot("__all_sync", mask, p == 0, loc) == 0; }
template <class T> unsigned __match_any_sync(unsigned mask, T value, Loc loc = {}) { return match(mask, to_bits(+value), loc); }

// ---- atomics: relaxed, each returns the old value

template <class T, class Next> T atomic_update(T* p, Next next) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  if (isolated) note_atomic(p, sizeof(T));
  T old, wanted;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do wanted = next(old);
  while (!__atomic_compare_exchange(p, &old, &wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
template <class T> T atomicAdd(T* p, std::type_identity_t<T> value) {
  if constexpr (std::is_integral_v<T>) {
    if (isolated) note_atomic(p, sizeof(T));
    return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
  } else {
    return atomic_update(p, [=](T old) { return old + value; });
  }
}
template <class T> T atomicExch(T* p, std::type_identity_t<T> value) {
  if (isolated) note_atomic(p, sizeof(T));
  T old;
  __atomic_exchange(p, &value, &old, __ATOMIC_RELAXED);
  return old;
}
template <class T> T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA has no atomicCAS of floating-point numbers");
  if (isolated) note_atomic(p, sizeof(T));
  if (!__atomic_compare_exchange(p, &expected, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) poll();
  return expected;
}

// ---- loads, stores, bits

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }

}  // namespace emu

using emu::__all_sync, emu::__any_sync, emu::__ballot_sync, emu::__match_any_sync;
using emu::__float_as_uint, emu::__popc, emu::__uint_as_float, emu::__umulhi;
using emu::__shfl_sync, emu::__shfl_up_sync, emu::__shfl_down_sync, emu::__shfl_xor_sync;
using emu::__syncthreads, emu::__syncwarp, emu::__threadfence, emu::__nanosleep, emu::__trap;
using emu::atomicAdd, emu::atomicCAS, emu::atomicExch;
