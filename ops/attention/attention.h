#pragma once
#include "autograd/arg.h"

namespace ricci {

// Which keys a query sees, and into how many heads the width is cut. Query t sees key s iff 0 <= t - s, and with a window
// 0 <= t - s < window; not causal: every key, and with a window t - s < window.
struct AttentionOptions {
  int64_t heads;
  bool causal = true;
  int64_t window = 0;  // 0: none
  double dropout = 0;  // probability that a p_ts is dropped, the others are divided by 1 - dropout; not of attention_cached
  // Padding: of sequence b only the keys s < lengths_b[b] are visible. i64, 0 .. c each, on the device of the projection;
  // empty: every key is. Not of attention_cached.
  Tensor lengths_b{};
};

// Scaled dot-product attention (Vaswani et al. 2017). qkv_bcx is the packed projection [b, c, 3 d]: row blocks q | k | v, in
// each the heads one after the other, k = d / heads wide. Returns y [b, c, d] with
//   y_bt = sum_s p_ts v_s,   p_ts = softmax over the visible s of q_t . k_s / sqrt(k)
// With dropout each p_ts is 0 with that probability and divided by 1 - dropout otherwise; the call takes one random stream.
// A query that sees no key gives exactly zero and passes no gradient, and keys and values of padding are not read. No c x c
// matrix is stored: the backward keeps qkv, y and one number per query and head. The result has the same bits for any number of CPU threads.
// Errors: another rank, a width that is no multiple of 3 heads, no heads, a negative window, a dropout outside [0, 1);
// lengths of another shape, dtype or device, a length outside 0 .. c. On cuda, where reading the lengths would mean to wait,
// one below 0 counts as 0 and one above c as c.
Tensor attention(const Arg& qkv_bcx, const AttentionOptions& options);

// The definition of the above, in f64 with the whole c x c matrix, on the CPU: slow, what the tests hold `attention` to.
Tensor naive_attention(const Arg& qkv_bcx, const AttentionOptions& options);

// Attention of the new positions past .. past + c, given the projection of these alone; the keys and values of all earlier
// ones come from the caches [b, heads, capacity, k], into which those of the new positions are written: position t lies in
// slot t mod capacity. With a window the caches need no more than `window` slots, else one per position. Without gradient.
// Errors: not causal, lengths, caches of another shape, dtype or device, too few slots.
Tensor attention_cached(const Arg& qkv_bcx, Tensor& k_cache_bnsk, Tensor& v_cache_bnsk, int64_t past, const AttentionOptions& options);

}  // namespace ricci
