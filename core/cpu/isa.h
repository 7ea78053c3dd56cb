// Runs a loop with this CPU's widest instruction set. On x86-64, the body is inlined into one function per instruction set (SSE2, AVX2,
// AVX-512). The choice is made at run time, so one binary runs on every machine. 64-bit ARM has one instruction set, NEON.
#pragma once
#include <array>
#include <cstdint>

#include "core/choice.h"

namespace ricci {

// Every processor has the baseline: SSE2, or NEON on ARM. avx512_bf16 is avx512 with products of bf16 pairs, and amx also supports products
// of bf16 tiles. Only cuda/gemm/pairs.h uses these; other loops are the same as for avx512.
enum class Isa : uint8_t { baseline, avx2, avx512, avx512_bf16, amx };

// This CPU's widest instruction set, limited by RICCI_ISA.
Isa cpu_isa();  // core/cpu/available.cpp
#if defined(__aarch64__)
constexpr auto choices(Isa) { return std::array{"neon"}; }
constexpr int kBaselineRegisters = 32;  // vector registers of 16 bytes
#else
constexpr auto choices(Isa) { return std::array{"baseline", "avx2", "avx512", "avx512_bf16", "amx"}; }
constexpr int kBaselineRegisters = 16;
#endif

// Builds with a sanitizer have only the narrowest set. Compiling all three sets would take three times as long and find no further
// errors.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RICCI_WIDE_LOOPS
#endif

#if defined(__x86_64__)
#ifdef __clang__  // Clang already prefers the widest vectors, and ignores the entire list if it contains an unknown entry
#define RICCI_AVX512 "avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,bmi,bmi2,lzcnt"
#else
#define RICCI_AVX512 "avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,bmi,bmi2,lzcnt,prefer-vector-width=512"
#endif
#define RICCI_AVX2 "avx2,fma,bmi,bmi2,lzcnt"

template <class Body> __attribute__((flatten, noinline, target(RICCI_AVX512))) void run_avx512(Body body, int64_t begin, int64_t end) {
  body(begin, end);
}
template <class Body> __attribute__((flatten, noinline, target(RICCI_AVX2))) void run_avx2(Body body, int64_t begin, int64_t end) {
  body(begin, end);
}
#endif
template <class Body> __attribute__((flatten, noinline)) void run_baseline(Body body, int64_t begin, int64_t end) { body(begin, end); }

// Passing the body by value shows the compiler that no store through a pointer changes the body itself.
template <class Body> void run_vectorized(const Body& body, int64_t begin, int64_t end) {
#ifdef RICCI_WIDE_LOOPS
  switch (cpu_isa()) {
    case Isa::amx:
    case Isa::avx512_bf16:
    case Isa::avx512: return run_avx512(body, begin, end);
    case Isa::avx2: return run_avx2(body, begin, end);
    case Isa::baseline: break;
  }
#endif
  run_baseline(body, begin, end);
}

// Runs a body that is written for vectors of `Bytes` bytes, with the narrowest instruction set that supports them.
template <int Bytes, class Body> void run_with_vectors(const Body& body, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if constexpr (Bytes == 64) return run_avx512(body, begin, end);
  if constexpr (Bytes == 32) return run_avx2(body, begin, end);
#endif
  run_baseline(body, begin, end);
}

}  // namespace ricci
