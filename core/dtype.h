// The element types of tensors: C++ types for kernels, and the enum Dtype for run time. f16 is left out. bf16, unlike f16, has the range of
// f32, so small gradients do not become 0 and the loss needs no scaling.
#pragma once
#include <cstdint>

// Marks a function that host and device code share. Without nvcc, it is an ordinary inline function.
#ifdef __CUDACC__
#define HD __host__ __device__ __forceinline__
#else
#define HD inline __attribute__((always_inline))
#endif

namespace ricci {

// Kernels cannot call std::min and std::max. With a NaN, the result is either argument; math::min (cuda/math.h) keeps the NaN.
template <class T> HD constexpr T min(T a, T b) { return a < b ? a : b; }
template <class T> HD constexpr T max(T a, T b) { return a > b ? a : b; }
template <class T> HD constexpr T between(T low, T x, T high) { return max(low, min(x, high)); }  // returns low if high is below low

// The upper half of an f32, rounded to nearest even. For storage only: arithmetic uses f32.
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

enum class Dtype : uint8_t { f32, f64, bf16, i64 };
inline constexpr const char* kFloatingDtypes = "f32, f64 or bf16";
const char* name_of(Dtype dtype);
int64_t size_of(Dtype dtype);  // bytes per element

template <class T> inline constexpr Dtype dtype_of = Dtype::f32;
template <> inline constexpr Dtype dtype_of<double> = Dtype::f64;
template <> inline constexpr Dtype dtype_of<bf16> = Dtype::bf16;
template <> inline constexpr Dtype dtype_of<int64_t> = Dtype::i64;

// The dtype of accumulators and optimizer state: f64 for f64, else f32. bf16 would lose small changes.
inline Dtype sums_of(Dtype dtype) { return dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

// The C++ type of accumulators: float for bf16, else T.
template <class T> struct AccumulatorOf { using Type = T; };
template <> struct AccumulatorOf<bf16> { using Type = float; };
template <class T> using Accumulator = typename AccumulatorOf<T>::Type;

}  // namespace ricci
