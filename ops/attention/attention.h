// Scaled dot-product attention: each query returns a mean of values, weighted by how well the keys match it. This folder contains many
// versions, from slow to fast, all tested against definition.cpp. In reading order:
//   visibility.h      which keys a query sees: one rule for all versions
//   definition.cpp    the formulas and their derivatives as plain loops, with all scores in memory
//   cpu/              blocks of 64 queries and 64 keys, as vectorised loops on CPU threads: the scores of a block stay in the cache
//   gpu/              the same blocks in shared memory, for any width and dtype
//   flash/            bf16 on tensor cores: scores and weights never leave the registers
//   decode/           attention of new positions to the cached keys and values of earlier ones
// attention.cpp defines the public op, check.cpp its errors, and kernels.h the shared types.
#pragma once
#include <array>

#include "autograd/arg.h"
#include "ops/attention/visibility.h"

namespace ricci {

// The columns offset .. offset + width - 1 of a tensor [b, c, x]: one linear layer often computes queries, keys and values side by side.
// Heads are side by side as well, with k = width / heads columns each.
struct ColumnSlice {
  Arg tensor;
  int64_t offset = 0, width = 0;  // width 0: all columns from offset on
  int64_t group = 1;              // number of query heads that share a head of this slice; set by attention()
};

// The slices q | k | v of a packed projection [b, c, 3 d]. Error: the number of columns is not a multiple of 3.
std::array<ColumnSlice, 3> thirds(const Arg& qkv_bcx);

struct AttentionOptions {
  int64_t heads;
  double scale = 0;    // z, the factor of the scores, or 0 for 1 / sqrt(k)
  double dropout = 0;  // probability that a weight p_tj becomes 0; the other weights are divided by 1 - dropout
  Tensor lengths_b{};  // i64: sequence b has lengths_b[b] keys. The padding after them is not used
  // The number of heads of keys and values (Ainslie et al. 2023), or 0 for `heads`. Each of these heads is shared by heads / kv_heads
  // adjacent query heads.
  int64_t kv_heads = 0;
};

// Attention (Vaswani et al. 2017) of the c queries in q [b, c, x] to the keys and values in k and v [b, C, x]. In every head
//   y_t = sum_j p_tj v_j,   p_tj = softmax over j of z q_t . k_j,   over the keys j that query t sees
// Returns y [b, c, heads k]. The slices can belong to one, two or three tensors. The gradients of equal slices are added. The output for a
// query that sees no key is zero and passes on no gradient. No c x C matrix is stored: the backward pass uses q, k, v, y and one number for
// each query, and computes the scores again. The results are bitwise identical for any number of CPU threads. Errors: shapes, dtypes or
// devices differ; slices overlap but are not equal; `heads` does not divide the columns, kv_heads does not divide `heads`; the scale is
// negative; the dropout is outside [0, 1); a length is outside 0 .. C (on cuda it is clamped to 0 .. C, to avoid waiting for the GPU).
Tensor attention(const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees, const AttentionOptions& options);

// The definition (definition.cpp) for one head, on f64 matrices on the CPU: the weights, the output, and the gradients of q, k and v.
Tensor naive_weights(const Tensor& q_ck, const Tensor& k_Ck, const Visibility& sees, double z);
Tensor naive_attention(const Tensor& q_ck, const Tensor& k_Ck, const Tensor& v_Ck, const Visibility& sees, double z);
std::array<Tensor, 3> naive_attention_gradients(
    const Tensor& dy_ck, const Tensor& q_ck, const Tensor& k_Ck, const Tensor& v_Ck, const Visibility& sees, double z);

// Returns the weights p_tj of all heads for inspection, as [b heads c C] in f64 on the CPU and without dropout. The weight of a key that
// the query does not see is 0. Not recorded. Errors: as for attention.
Tensor attention_weights(const ColumnSlice& q, const ColumnSlice& k, const Visibility& sees, const AttentionOptions& options);

// Decoding: returns the attention output of the new positions past, past + 1, ..., for their q, k and v. Adds the new keys and values to
// the caches [b, kv_heads, slots, k] of earlier positions: position t is in slot t mod slots. With a window, the caches need at most
// sees.most slots; without a window, one slot for each position. If k and v are equal slices, they can share a cache. Without gradient. If
// the cached keys are cells, call attention() itself, with the cache as k and v and sees.from(past).
// Errors: keys are cells, attention is not causal, lengths are given, the caches have the wrong shape or too few slots, or different slices
// share a cache.
Tensor attention_cached(const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, Tensor& k_cache_bnsk, Tensor& v_cache_bnsk,
    int64_t past, const Visibility& sees, const AttentionOptions& options);

}  // namespace ricci

// Measured on one core of an AMD EPYC (Zen 5), 2026-11-24, by `ricci-bench-rungs attention --threads 1`: the forward pass of 2,048 queries
// and keys, causal, 4 heads of width 64. A minus: not measured. tests/bench/README.md lists the times on an H200.
//                                         lines        ms  method
//   ops/attention/definition.cpp             76         -  all scores in memory, in f64
//   ops/first_rungs.cpp                     105      36.0  contract, mask, softmax, contract: recorded ops
//   ops/attention/cpu/forward.cpp           120      11.9  blocks of 64 x 64 and a running softmax
//   ops/attention/gpu/forward.cu            120         -  the same blocks, one for each thread block
//   ops/attention/flash/forward.cu          100         -  tensor cores
//   ops/attention/flash/wgmma/forward.cu    100         -  products of four warps together, on compute capability 9.0
//   ops/attention/flash/padded.cpp           80         -  heads of other widths, padded for flash/
