// cuda/ptx.h for the GPU, where each function is documented.
#pragma once
#include <stdint.h>

namespace ricci::ptx {

#define RICCI_MMA(shape_and_types)                                                                                    \
  asm volatile("mma.sync.aligned." shape_and_types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
__device__ inline void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  RICCI_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
}
__device__ inline void mma_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  RICCI_MMA("m16n8k16.row.col.f32.f16.f16.f32");
}
__device__ inline void mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  RICCI_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
}
#undef RICCI_MMA

__device__ inline uint32_t to_tf32(float x) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
}

__device__ inline uint32_t pack_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

__device__ inline float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The address within shared memory that the instructions below take.
__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

#define RICCI_LDMATRIX(how, operands, ...) \
  asm volatile("ldmatrix.sync.aligned.m8n8." how ".shared.b16 " operands ";" : __VA_ARGS__ : "r"(shared_address(row)) : "memory")
#define RICCI_LDMATRIX_OF(trans)                                                              \
  static_assert(N == 1 || N == 2 || N == 4);                                                  \
  if constexpr (N == 1) RICCI_LDMATRIX("x1" trans, "{%0}, [%1]", "=r"(r[0]));                 \
  if constexpr (N == 2) RICCI_LDMATRIX("x2" trans, "{%0, %1}, [%2]", "=r"(r[0]), "=r"(r[1])); \
  if constexpr (N == 4) RICCI_LDMATRIX("x4" trans, "{%0, %1, %2, %3}, [%4]", "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]))
template <int N> __device__ inline void ldmatrix(uint32_t (&r)[N], const void* row) { RICCI_LDMATRIX_OF(""); }
template <int N> __device__ inline void ldmatrix_trans(uint32_t (&r)[N], const void* row) { RICCI_LDMATRIX_OF(".trans"); }
#undef RICCI_LDMATRIX_OF
#undef RICCI_LDMATRIX

template <int N> __device__ inline void cp_async(void* shared, const void* global, int source_bytes = N) {
  static_assert(N == 4 || N == 8 || N == 16);
  const uint32_t at = shared_address(shared);
  if constexpr (N == 16)  // past the L1 cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(__cvta_generic_to_global(global)), "n"(N), "r"(source_bytes)
                 : "memory");
}

__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n> __device__ inline void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory"); }
__device__ inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ inline uint4 load16(const void* p) { return *static_cast<const uint4*>(p); }
__device__ inline void store16(void* p, uint4 value) { *static_cast<uint4*>(p) = value; }

__device__ inline uint4 load16_once(const void* global) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(global)));
  return v;
}

__device__ inline void store16_once(void* global, uint4 value) { __stcs(static_cast<uint4*>(global), value); }

}  // namespace ricci::ptx
