// Scaled dot-product attention. The same formula is here several times, from the definition to the fast kernel; each
// rung is tested against the first. In reading order:
//   visibility.h            which keys a query sees: the one rule that all of them share
//   definition.cpp          the formula and its derivative, spelled out with all scores in memory
//   attention.cpp           the public op: what it keeps for the backward, and the choice of the implementation
//   problem.h, kernels.h    what the implementations share: extents, views as pointers, dropout
//   gpu/                    blocks of 64 x 64 in shared memory, any width and dtype: no scores in memory any more
//   cpu/                    the same blocks on CPU threads, as vectorised loops, or in bf16 where the processor has instructions for it
//   flash/                  bf16 on tensor cores: scores and weights never leave the registers
//   wide/                   bf16 heads of other widths: padded for flash/, or as matrix products and a softmax of whole rows
//   decode/                 new positions against the cached keys and values of the earlier ones
#pragma once
#include <array>

#include "autograd/arg.h"
#include "ops/attention/visibility.h"

namespace ricci {

// A slice of columns: `width` columns of a tensor [b, c, x], from column `offset` on. Queries, keys and values are given
// so, the heads one after the other, k = width / heads columns each.
struct Rows {
  Arg tensor;
  int64_t offset = 0, width = 0;  // width 0: all columns from offset on
  int64_t group = 1;              // neighbouring query heads that share a head of this view; attention sets it
};

// Queries, keys and values of a packed projection [b, c, 3 d]: the column blocks q | k | v. Error: x is no multiple of 3.
std::array<Rows, 3> thirds(const Arg& qkv_bcx);

struct AttentionOptions {
  int64_t heads;
  double scale = 0;    // the factor of the scores; 1 / sqrt(k) if it is 0
  double dropout = 0;  // probability that a p_tj is dropped, the others are divided by 1 - dropout; not of attention_cached
  // Padding: of sequence b only the keys j < lengths_b[b] exist. i64, 0 .. C each, on the device of the keys; without lengths all keys
  // exist. Not of attention_cached.
  Tensor lengths_b{};
  // Heads of keys and values (Ainslie et al. 2023), one for each query head if it is 0. Each is shared by heads / kv_heads neighbouring
  // query heads: query head n attends to head n div (heads / kv_heads).
  int64_t kv_heads = 0;
};

// Scaled dot-product attention (Vaswani et al. 2017) of c queries to C keys and their values. q is a view of [b, c, x]; k and
// v are views of [b, C, x], of kv_heads heads. Returns y [b, c, heads k], of every head
//   y_t = sum_j p_tj v_j,   p_tj = softmax of scale q_t . k_j over the keys j that query t sees
// The three views may be in one tensor (thirds of a packed projection), in two or in three. Views may also be the same columns
// of the same tensor; their gradients then add up. The gradients are written where they belong, and a tensor is only filled
// with zeros first where it has columns that no view uses. Nothing is copied, but for what ops/attention/wide/ does on GPUs.
// With dropout each p_tj is 0 with that probability and divided by 1 - dropout otherwise; the call takes one random stream.
// A query that sees no key gives exactly zero and passes no gradient. What padding holds is not read. No c x C matrix is
// kept: the backward has the tensors of the views, y and one number per query and head. The result has the same bits for
// any number of CPU threads.
// Errors: an empty tensor, another rank; batches, key counts, widths, dtypes or devices that differ; columns that do not exist, or overlap
// without being the same; a width that is no multiple of the heads; kv_heads that do not divide the heads; keys of less than one or more
// than 2^24 tokens; a negative scale; a dropout outside [0, 1); lengths of another shape, dtype or device, a length outside 0 .. C. On
// cuda, where reading the lengths would mean to wait, a length below 0 counts as 0 and one above C as C.
Tensor attention(const Rows& q, const Rows& k, const Rows& v, const Visibility& sees, const AttentionOptions& options);

// The definition of the above, in f64 with the whole c x C matrix, on the CPU: slow, what the tests hold `attention` to.
Tensor naive_attention(const Rows& q, const Rows& k, const Rows& v, const Visibility& sees, const AttentionOptions& options);

// The weights p_tj of the definition as a table [b heads c C], in f64 on the CPU, for people to look at; zero for keys that a query does
// not see. Dropout is left out. Not recorded. Errors: as for `attention`.
Tensor attention_weights(const Rows& q, const Rows& k, const Visibility& sees, const AttentionOptions& options);

// Attention of the new positions past .. past + c, given the queries, keys and values of these alone; the ones of all earlier
// positions come from the caches [b, kv_heads, capacity, k], into which the new keys and values are written: position t is in
// slot t mod capacity. Both caches may be one tensor where k and v are the same view. Keys are tokens (scale 1). With a
// window (sees.most) the caches need no more slots than that, else one per position. Without gradient.
// Attention to cached cells of a coarser scale is `attention` itself, with the cache as k and v and sees.from(past).
// Errors: a visibility that is not causal or not of tokens, lengths, caches of another shape, dtype or device, one cache for two views,
// too few slots.
Tensor attention_cached(const Rows& q, const Rows& k, const Rows& v, Tensor& k_cache_bnsk, Tensor& v_cache_bnsk, int64_t past,
    const Visibility& sees, const AttentionOptions& options);

}  // namespace ricci

// The ladder. Each rung is tested against the definition. The milliseconds are for the forward of 2,048 queries and keys, causal, in 4
// heads of width 64, on one core of an AMD EPYC (Zen 5, 2026-11-24, `ricci-bench-rungs attention --threads 1`); the floor is 7.9 ms in
// f32. Rungs with a minus need a GPU: their times have not been measured yet.
//                                         lines        ms  gain
//   ops/attention/definition.cpp            139      3162  in f64, with the derivative written out: the tests hold all others to it
//   ops/first_rungs.cpp                      91      36.0  contract, mask, softmax, contract: the formula as recorded ops
//   ops/attention/cpu/forward.cpp           116      11.9  blocks of 64 x 64 and online softmax: scores stay in the caches
//   ops/attention/gpu/forward.cu            124         -  the same blocks in shared memory, a block of threads each
//   ops/attention/flash/forward.cu           98         -  tensor cores: scores and weights stay in registers
//   ops/attention/flash/wgmma/forward.cu    111         -  products of four warps at once, on compute capability 9.0
//   ops/attention/wide/padded.cpp            83         -  heads of other widths, padded for flash/
