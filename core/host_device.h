// HD marks a function that host and device code share. Without nvcc it is an ordinary inline function.
#pragma once

#ifdef __CUDACC__
#define HD __host__ __device__ __forceinline__
#else
#define HD inline __attribute__((always_inline))
#endif
