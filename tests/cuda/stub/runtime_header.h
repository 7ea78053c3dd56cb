// The header of the CUDA runtime for files that include the emulator as well: what both name gets another name here. None of it is part of
// a signature in C.
#pragma once
#define dim3 cuda_dim3
#define double2 cuda_double2
#define float2 cuda_float2
#define float4 cuda_float4
#define int2 cuda_int2
#define int4 cuda_int4
#define uint2 cuda_uint2
#define uint3 cuda_uint3
#define uint4 cuda_uint4
#include <cuda_runtime_api.h>
#undef dim3
#undef double2
#undef float2
#undef float4
#undef int2
#undef int4
#undef uint2
#undef uint3
#undef uint4
#undef __global__
#undef __device__
#undef __host__
#undef __launch_bounds__
#undef __grid_constant__
#undef __align__
#undef __forceinline__
