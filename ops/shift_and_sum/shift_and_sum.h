// The shift-and-sum of the Dispatcher (Cetoli 2021). At level r, each position adds the value of the position 2^r before it, times a
// coefficient:
//   V^{r+1}[i] = V^r[i] + c[i, r] V^r[i - 2^r]     if i >= 2^r, for r = 0 .. R - 1
// After R levels, a position depends on the 2^R - 1 positions before it: each distance is a sum of powers of two. The cost is R
// multiplications per number; attention needs one for each pair of positions.
//
// The backward pass is the same recurrence in reverse, from the last level to the first. With G^r = dL/dV^r and G^R = dL/dy,
//   G^r[i] = G^{r+1}[i] + c[i + 2^r, r] G^{r+1}[i + 2^r]          V^r[i] is used at positions i and i + 2^r
//   dc[i, r] = sum over the columns of G^{r+1}[i] V^r[i - 2^r]
// and dv = G^0. Only v and c are kept: the backward pass computes the V^r again instead of storing R tensors.
//
// In reading order: definition.cpp (the formula as recorded ops), walk.h (three levels in one pass), shift_and_sum.cu (the public op),
// problem.h and kernels.h (shared by the implementations), cpu.cpp, gpu/ (tile.h, walks.h, block_walk.h, then the kernels), cached.cu.
#pragma once
#include "autograd/arg.h"

namespace ricci {

struct ShiftAndSumOptions {
  int64_t heads = 1;
  double dropout = 0;         // probability that a level is skipped
  bool drops_level_0 = true;  // dropout can skip level 0
};

// Returns V^R [b c d] of the values v_bcd = V^0. A head has d / heads adjacent columns, and at each position R adjacent coefficients in
// coef_bcx, x = heads R. With dropout, each level is skipped with that probability, for all heads of the batch together. The remaining
// levels are not rescaled, and no memory access is saved (three levels share one pass). The results are bitwise identical for any number of
// CPU threads.
// Errors: shapes, dtypes or devices differ; `heads` does not divide the columns; the number of levels is outside 1 .. 30; the dropout is
// outside [0, 1).
Tensor shift_and_sum(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options);

// The definition, level by level, with every V^r in memory.
Tensor naive_shift_and_sum(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options);

// Decoding: the new positions past, past + 1, ... The V^r of earlier positions are in rings_bsd [b, 2^R - 1, d], updated here: the slots
// 2^r - 1 .. 2^{r+1} - 2 are a ring of the last 2^r values of V^r, with position t in slot t mod 2^r. With only 2^L - 1 slots, the levels
// from L on are left out, and all positions must be below 2^L. Without gradient. A column's positions are computed one after the other, so
// on a GPU a long prompt is parallel only over columns. Errors: as above; dropout is used; rings_bsd has the wrong shape, dtype or device;
// the slot count is not 2^L - 1.
Tensor shift_and_sum_cached(const Arg& v_bcd, const Arg& coef_bcx, Tensor& rings_bsd, int64_t past, const ShiftAndSumOptions& options);

}  // namespace ricci

// Measured on one core of an AMD EPYC (Zen 5), 2026-11-24, by `ricci-bench-rungs shift_and_sum --threads 1`: the forward pass of 16
// sequences of 2,048 positions, width 256, 4 heads, 11 levels. tests/bench/README.md lists the times on an H200.
//                                     lines        ms  method
//   ops/shift_and_sum/definition.cpp     30      72.7  recorded ops: every V^r is a tensor in memory
//   ops/first_rungs.cpp                 105      31.4  the levels in place, one pass over memory for each; in f64
//   ops/shift_and_sum/cpu.cpp           160       5.5  three levels in one pass (walk.h), over strips of columns in the cache
//   ops/shift_and_sum/gpu/forward.cu     60         -  32 columns of a sequence in shared memory: multiple walks in one pass
