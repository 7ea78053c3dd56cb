// Instructions that C++ cannot express: tensor cores, ldmatrix, asynchronous copies, 2^x, 16-byte accesses. Kernels use them only through
// these functions, so the emulator can check them: the functions are inline PTX for the GPU (cuda/toolkit/ptx.h; sm_80 and later) and C++
// code for the emulator (cuda/emulator/instructions/ptx.h). Layouts and rules are as in the PTX ISA, "Warp-level Matrix Instructions" and
// "cp.async". Votes, shuffles and atomics have CUDA's own names on the emulator (cuda/emulator/instructions/collectives.h).
//
// Fragments. With g = lane / 4 and t = lane % 4, a 32-bit register holds these elements of the matrices a [m][k], b [k][n], c [m][n]:
//   mma_bf16 (m16n8k16; two elements, the lower k in the low half)
//     a[0]: row g,     k 2t, 2t+1      b[0]: k 2t, 2t+1,  column g       c[0], c[1]: row g,     columns 2t, 2t+1
//     a[1]: row g + 8, k 2t, 2t+1      b[1]: k 2t+8, +9,  column g       c[2], c[3]: row g + 8, columns 2t, 2t+1
//     a[2]: row g,     k 2t+8, +9
//     a[3]: row g + 8, k 2t+8, +9
// All 32 lanes take part in each mma_* and ldmatrix.
//
//   void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);    c += a b, sums in f32
//   uint32_t pack_bf16(float low, float high);       rounded to nearest even
//
//   void ldmatrix<1|2|4>(uint32_t (&r)[N], const void* row);        r[i] = elements 2t, 2t+1 of row g of 8x8 matrix i
//   void ldmatrix_trans<1|2|4>(uint32_t (&r)[N], const void* row);  r[i] = rows 2t, 2t+1 of column g
//     Elements have 16 bits. Lane 8i + j gives the address, in shared memory and a multiple of 16, of row j of matrix i;
//     the other lanes' addresses are not read.
//
//   void cp_async<4|8|16>(void* shared, const void* global, int source_bytes = N);
//     Begins to copy N bytes: source_bytes of the source, then zeros. Both addresses are multiples of N.
//   void cp_async_commit();       closes this thread's group: the copies begun since the last commit
//   void cp_async_wait<n>();      waits until all but the last n groups of this thread have arrived; other threads' copies need a
//                                 barrier after that
//   void cp_async_wait_all();     waits for all copies, committed or not
//
// wgmma, in code for sm_90a that runs on compute capability 9.0 (has_wgmma); in other code these functions are a trap. A warpgroup is four
// warps, beginning at a multiple of four; they execute these functions together. Each product d [64][n] += a [64][16] b [16][n] runs in the
// background until wgmma_wait. Warp w of the four holds rows 16 w .. 16 w + 15 of a and d, in the layout of mma_bf16: d[i] has the columns
// 8 i .. 8 i + 7. b is in shared memory; the tensor cores read b through the asynchronous proxy.
//   Descriptor descriptor(const void* shared, int leading, int stride);
//     A matrix of bf16 in panels of rows of 128 bytes; panels begin at multiples of 1,024. In row r, chunk c of 16 bytes is at c ^ r % 8.
//     Its rows are the columns of b, or with `transposed` its lines k, or the rows of a. `stride` bytes are between rows r and r + 8. With
//     `transposed`, `leading` bytes are between panels; `leading` is not read without it. after(bytes) begins `bytes` later: k elements in
//     the rows, or whole multiples of 8 rows.
//   void wgmma_bf16<transposed, accumulate>(float (&d)[n / 8][4], const uint32_t (&a)[4], Descriptor b);      n = 64 or 128, sums in f32
//   void wgmma_bf16<transposed, accumulate>(float (&d)[8][4], Descriptor a, Descriptor b);    a is in shared memory, as b is
//     Without `accumulate`, d = a b, and d need not be initialized.
//   void wgmma_fence(registers, ...);    before the first product, and after a wait: names d, if it is added to, and a in registers
//   void wgmma_commit();                 closes a group of products
//   void wgmma_wait<n>(d);               waits until all but the last n groups are done; names their d. Before it, do not use d, a or b.
//   void fence_proxy_async();            called by each thread that wrote to shared memory, before the barrier that precedes reads of b
//
//   float exp2_approx(float x);                  2^x with a relative error below 2^-21; 0 below the smallest normal number
//   float reciprocal_approx(float x);            1 / x with a relative error below 2^-21; subnormal x and results are 0
//
//   uint4 load16(const void* p);                 p is a multiple of 16, here and below
//   void store16(void* p, uint4 value);
//   void store16_whole(void* global, uint4 value);   nvcc splits some store16 in four, but never store16_whole; it uses more registers
#pragma once
#include "cuda/seam.h"

namespace ricci::ptx {

struct Descriptor {
  uint64_t bits;
  // Only the lower half, with the address, changes.
  HD Descriptor after(int bytes) const { return {bits >> 32 << 32 | (static_cast<uint32_t>(bits) + static_cast<uint32_t>(bytes >> 4))}; }
};
// See the PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". The address is relative to shared memory.
HD Descriptor descriptor_of(uint32_t address, int leading, int stride) {
  const auto field = [](uint32_t bytes) { return uint64_t{(bytes & 0x3ffffu) >> 4}; };
  constexpr uint64_t kSwizzleOf128Bytes = uint64_t{1} << 62;
  return {field(address) | field(static_cast<uint32_t>(leading)) << 16 | field(static_cast<uint32_t>(stride)) << 32 | kSwizzleOf128Bytes};
}

}  // namespace ricci::ptx

#ifdef __CUDACC__
#include "cuda/toolkit/ptx.h"
#else
#include "cuda/emulator/instructions/ptx.h"
#endif
