// Defines the functions of cuda/ptx.h for the GPU. They are documented there.
#pragma once
#include <stdint.h>

namespace ricci::ptx {

__device__ inline void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
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

// The address relative to shared memory, as the instructions below require.
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
  const uint32_t address = shared_address(shared);
  if constexpr (N == 16)  // bypasses the L1 cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
                 : "memory");
  else
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(__cvta_generic_to_global(global)), "n"(N), "r"(source_bytes)
        : "memory");
}

__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n> __device__ inline void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory"); }
__device__ inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ inline uint4 load16(const void* p) { return *static_cast<const uint4*>(p); }
__device__ inline void store16(void* p, uint4 value) { *static_cast<uint4*>(p) = value; }
__device__ inline void store16_whole(void* global, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(global)), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// ---- wgmma, for compute capability 9.0 and code for sm_90a. In other code, these instructions are a trap, and the host launches no such
// kernel (has_wgmma).
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define RICCI_ON_SM90A(...) asm volatile(__VA_ARGS__)
#else
#define RICCI_ON_SM90A(...) __trap()
#endif

// Makes the compiler assume that these registers change here, so it moves no access to them across this line.
__device__ inline void keep_order(float& r) { asm volatile("" : "+f"(r)::"memory"); }
__device__ inline void keep_order(uint32_t& r) { asm volatile("" : "+r"(r)::"memory"); }
template <class T, int n> __device__ inline void keep_order(T (&registers)[n]) {
  UNROLL(16)
  for (int i = 0; i < n; ++i) keep_order(registers[i]);
}

template <class... Registers> __device__ inline void wgmma_fence(Registers&... registers) {
  (keep_order(registers), ...);
  RICCI_ON_SM90A("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() { RICCI_ON_SM90A("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int n, class Registers> __device__ inline void wgmma_wait(Registers& d) {
  RICCI_ON_SM90A("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory");
  keep_order(d);
}
__device__ inline void fence_proxy_async() { RICCI_ON_SM90A("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline Descriptor descriptor(const void* shared, int leading, int stride) {
  return descriptor_of(shared_address(shared), leading, stride);
}

#define RICCI_4_OF_D(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define RICCI_16_OF_D(i) RICCI_4_OF_D(i), RICCI_4_OF_D(i + 1), RICCI_4_OF_D(i + 2), RICCI_4_OF_D(i + 3)
#define RICCI_32_OF_D(i) RICCI_16_OF_D(i), RICCI_16_OF_D(i + 4)
#define RICCI_32_NAMES \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define RICCI_64_NAMES \
  RICCI_32_NAMES       \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
// The operands after a and b: whether to add to d, the signs of a and b, whether to transpose a (in shared memory) and b.
#define RICCI_WGMMA(columns, names, operands, adds) \
  "{.reg .pred add; setp.ne.b32 add, " adds ", 0; wgmma.mma_async.sync.aligned.m64n" columns "k16.f32.bf16.bf16 {" names "}, " operands ";}"
template <bool transposed, bool accumulate, int tiles>
__device__ inline void wgmma_bf16(float (&d)[tiles][4], const uint32_t (&a)[4], Descriptor b) {
  static_assert(tiles == 8 || tiles == 16);
  if constexpr (!accumulate)
    for (auto& tile : d)
      for (float& x : tile) asm volatile("" : "=f"(x));  // the register can contain anything
  if constexpr (tiles == 8)
    RICCI_ON_SM90A(RICCI_WGMMA("64", RICCI_32_NAMES, "{%32,%33,%34,%35}, %36, add, 1, 1, %37", "%38")
                   : RICCI_32_OF_D(0)
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits), "n"(transposed), "n"(accumulate));
  else
    RICCI_ON_SM90A(RICCI_WGMMA("128", RICCI_64_NAMES, "{%64,%65,%66,%67}, %68, add, 1, 1, %69", "%70")
                   : RICCI_32_OF_D(0), RICCI_32_OF_D(8)
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits), "n"(transposed), "n"(accumulate));
}
template <bool transposed, bool accumulate, int tiles> __device__ inline void wgmma_bf16(float (&d)[tiles][4], Descriptor a, Descriptor b) {
  static_assert(tiles == 8);
  if constexpr (!accumulate)
    for (auto& tile : d)
      for (float& x : tile) asm volatile("" : "=f"(x));
  RICCI_ON_SM90A(RICCI_WGMMA("64", RICCI_32_NAMES, "%32, %33, add, 1, 1, 0, %34", "%35")
                 : RICCI_32_OF_D(0)
                 : "l"(a.bits), "l"(b.bits), "n"(transposed), "n"(accumulate));
}
#undef RICCI_WGMMA
#undef RICCI_64_NAMES
#undef RICCI_32_NAMES
#undef RICCI_32_OF_D
#undef RICCI_16_OF_D
#undef RICCI_4_OF_D
#undef RICCI_ON_SM90A

}  // namespace ricci::ptx
