// CUDA's device functions for the emulator: barriers, warp collectives, atomics, bits. Included by emulator.h.
#pragma once
#include <type_traits>

#include "cuda/emulator/emulator.h"

namespace emu {

// ---- what the functions below are made of; a wrapped instruction (mma, ldmatrix) uses `collective` the same way

// Computes a collective for all lanes at once: payloads[l] is what lane l of `lanes` passed to `collective`.
using Resolve = void (*)(void* const* payloads, unsigned lanes);

// The calling lane waits until every lane of the mask has arrived with the same mask and resolve; the last one to arrive
// calls resolve. The payload is usually on the caller's stack and receives the result. `name` is for messages.
void collective(const char* name, unsigned mask, void* payload, Resolve resolve, Loc loc);

// Ends the launch with "kernel: what, thread, block, place".
[[noreturn]] void fail_thread(const char* what, Loc loc);

unsigned lane();
int barrier(bool predicate, Loc loc);  // returns how many threads of the block passed true
void poll();                           // lets all other threads of the block run first
void fence();
inline constinit thread_local bool isolated = false;  // blocks do not see each other: see isolation.h
void note_atomic(const void* p, size_t bytes);
void show_writes_to_all_blocks();
void note_read_only(const char* name, const void* p, size_t bytes, Loc loc);  // a load of what the launch must not write: read_only.h

enum class Shuffle : uint8_t { index, up, down, exclusive_or };
uint64_t shuffle(Shuffle kind, unsigned mask, uint64_t value, unsigned argument, int width, Loc loc);
unsigned ballot(const char* name, unsigned mask, bool predicate, Loc loc);
unsigned match(unsigned mask, uint64_t value, Loc loc);

enum class Fold : uint8_t { add, min, max, bit_and, bit_or, bit_xor };
int64_t fold(Fold kind, unsigned mask, int64_t value, Loc loc);

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

// ---- block and warp barriers, fences

inline void __syncthreads(Loc loc = {}) { barrier(false, loc); }
inline int __syncthreads_count(int p, Loc loc = {}) { return barrier(p != 0, loc); }
inline int __syncthreads_or(int p, Loc loc = {}) { return barrier(p != 0, loc) != 0; }
inline int __syncthreads_and(int p, Loc loc = {}) { return barrier(p == 0, loc) == 0; }
void __syncwarp(unsigned mask = ~0u, Loc loc = {});
inline void __threadfence() {
  fence();
  if (isolated) show_writes_to_all_blocks();
}
inline void __threadfence_block() { fence(); }
inline void __nanosleep(unsigned) { poll(); }
[[noreturn]] inline void __trap(Loc loc = {}) { fail_thread("__trap", loc); }

// ---- warp collectives. Numbers smaller than int are exchanged as int, as in CUDA.

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

// As on hardware: int and unsigned for add, min and max, unsigned for the bitwise ones.
inline int __reduce_add_sync(unsigned mask, int value, Loc loc = {}) { return static_cast<int>(fold(Fold::add, mask, value, loc)); }
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, Loc loc = {}) {
  return static_cast<unsigned>(fold(Fold::add, mask, value, loc));
}
inline int __reduce_min_sync(unsigned mask, int value, Loc loc = {}) { return static_cast<int>(fold(Fold::min, mask, value, loc)); }
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, Loc loc = {}) {
  return static_cast<unsigned>(fold(Fold::min, mask, value, loc));
}
inline int __reduce_max_sync(unsigned mask, int value, Loc loc = {}) { return static_cast<int>(fold(Fold::max, mask, value, loc)); }
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, Loc loc = {}) {
  return static_cast<unsigned>(fold(Fold::max, mask, value, loc));
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, Loc loc = {}) {
  return static_cast<unsigned>(fold(Fold::bit_and, mask, value, loc));
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, Loc loc = {}) {
  return static_cast<unsigned>(fold(Fold::bit_or, mask, value, loc));
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, Loc loc = {}) {
  return static_cast<unsigned>(fold(Fold::bit_xor, mask, value, loc));
}

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
template <class T> T atomicMax(T* p, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA has no atomicMax of floating-point numbers");
  return atomic_update(p, [=](T old) { return old < value ? value : old; });
}
template <class T> T atomicMin(T* p, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA has no atomicMin of floating-point numbers");
  return atomic_update(p, [=](T old) { return value < old ? value : old; });
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

template <class T> T __ldg(const T* p, Loc loc = {}) {
  static_assert(sizeof(T) <= 16, "no load is wider");
  note_read_only("__ldg", p, sizeof(T), loc);
  return *p;
}
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> void __stcs(T* p, std::type_identity_t<T> value) { *p = value; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

}  // namespace emu

using emu::__all_sync, emu::__any_sync, emu::__ballot_sync, emu::__match_any_sync;
using emu::__clz, emu::__ffs, emu::__ldcs, emu::__ldg, emu::__popc, emu::__stcs, emu::__umulhi;
using emu::__double_as_longlong, emu::__float_as_int, emu::__float_as_uint, emu::__int_as_float;
using emu::__longlong_as_double, emu::__uint_as_float;
using emu::__reduce_add_sync, emu::__reduce_min_sync, emu::__reduce_max_sync;
using emu::__reduce_and_sync, emu::__reduce_or_sync, emu::__reduce_xor_sync;
using emu::__shfl_sync, emu::__shfl_up_sync, emu::__shfl_down_sync, emu::__shfl_xor_sync;
using emu::__syncthreads, emu::__syncthreads_and, emu::__syncthreads_count, emu::__syncthreads_or, emu::__syncwarp;
using emu::__threadfence, emu::__threadfence_block, emu::__nanosleep, emu::__trap;
using emu::atomicAdd, emu::atomicCAS, emu::atomicExch, emu::atomicMax, emu::atomicMin;
