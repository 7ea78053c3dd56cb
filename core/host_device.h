// HD marks a function that host and device code share. Without nvcc it is an ordinary inline function.
#pragma once

#ifdef __CUDACC__
#define HD __host__ __device__ __forceinline__
#else
#define HD inline __attribute__((always_inline))
#endif

namespace ricci {

// For kernels, which cannot call std::min and std::max. Nothing is promised for NaN: math::min and math::max (cuda/math.h) keep it.
template <class T> HD constexpr T min(T a, T b) { return a < b ? a : b; }
template <class T> HD constexpr T max(T a, T b) { return a > b ? a : b; }
template <class T> HD constexpr T between(T low, T x, T high) { return max(low, min(x, high)); }  // low, where high is below it

}  // namespace ricci
