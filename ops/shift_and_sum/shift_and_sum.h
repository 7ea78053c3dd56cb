// The shift-and-sum of the Dispatcher (Cetoli 2021). In reading order:
//   definition.cpp     the formula, level by level, from recorded ops
//   walk.h             three levels of it in one walk over the positions, and their derivative, as the CPU computes them
//   shift_and_sum.cu   the public op: what it keeps for the backward, and the choice of the implementation
//   problem.h          what the implementations share: extents, which levels dropout skips, slices of columns
//   kernels.h          what the implementations are given
//   cpu.cpp            the walk on a strip of columns that stays in the cache
//   gpu/parts.h        how a GPU divides sequences that do not fit into its shared memory
//   gpu/tile.h         where a thread block is, and how its rows come into shared memory and back
//   gpu/walks.h        the walk of a half-warp in shared memory, and the sums of the gradients of its coefficients
//   gpu/block_walk.h   the shares of the half-warps of a block in a walk
//   gpu/forward.cu, gpu/backward.cu     the kernels
//   cached.cu          decoding: new positions against rings of the values of earlier ones
#pragma once
#include "autograd/arg.h"

namespace ricci {

struct ShiftAndSumOptions {
  int64_t heads = 1;
  double dropout = 0;         // probability that a level is skipped; not of shift_and_sum_cached
  bool drops_level_0 = true;  // whether dropout may skip level 0
};

// At level r each position adds the value of the position 2^r before it, as level r - 1 left it, times a coefficient:
//   V^{r+1}[i] = V^r[i] + c[i, r] V^r[i - 2^r]     where i >= 2^r, for r = 0 .. R - 1
// v_bcd are the values V^0, d / heads neighbouring columns for each head; coef_bcx are the coefficients, x = heads R, with the
// coefficients of a head together. Returns V^R [b c d]. A position depends on the 2^R - 1 before it.
// With dropout each level is skipped with that probability, for the whole batch and all heads at once; the call takes one random
// stream. Nothing is scaled for it. A skipped level saves its multiplications, but no pass over memory, since three levels share one.
// The backward keeps v and coef only and computes the V^r again. The result has the same bits for any number of CPU threads.
// Errors: batches, positions, dtypes or devices that differ; widths that are no multiple of the heads; no level, or more than 30;
// a dropout outside [0, 1).
Tensor shift_and_sum(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options);

// The definition of the above, level by level, with every V^r in memory.
Tensor naive_shift_and_sum(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options);

// The shift-and-sum of the new positions past .. past + c. rings_bsd [b, 2^R - 1, d] remembers the V^r of the earlier ones:
// slots 2^r - 1 .. 2^{r+1} - 2 are a ring of the last 2^r of them, where position t has slot t mod 2^r. It is written. With fewer
// slots, 2^L - 1, the levels from L on are left out: that is right where no position reaches 2^L. Without gradient.
// A column's new positions are computed one after the other: on a GPU a long prompt is read with parallel columns alone.
// Errors: as above; dropout; rings of another shape, dtype or device; a number of slots that is not one less than a power of two.
Tensor shift_and_sum_cached(const Arg& v_bcd, const Arg& coef_bcx, Tensor& rings_bsd, int64_t past, const ShiftAndSumOptions& options);

}  // namespace ricci

// The ladder. Each rung is tested against the definition. The milliseconds are for the forward of 16 sequences of 2,048 positions, width
// 256, 4 heads, 11 levels, on one core of an AMD EPYC (Zen 5, 2026-11-24, `ricci-bench-rungs shift_and_sum --threads 1`); the floor
// is 1.1 ms in f32. The rung with a minus needs a GPU: its time has not been measured yet.
//                                     lines        ms  gain
//   ops/shift_and_sum/definition.cpp     27      72.7  the formula as recorded ops: every V^r is a tensor in memory
//   ops/first_rungs.cpp                  91      31.4  the levels in place, one pass over memory for each; in f64
//   ops/shift_and_sum/cpu.cpp           164       5.5  three levels in one pass (walk.h), over strips of columns in the cache
//   ops/shift_and_sum/gpu/forward.cu     63         -  32 columns of a sequence in shared memory: several walks in one pass
