// The mixer `quad_full`: attention whose scores are a quadratic form of the whole input for every head,
//   r_bncC = x_bc U_n x_bC^T / sqrt(k),   s = softmax_C(r | visible),   y = merge(s v) W_out^T,   v = x W_val^T
// U_n = Wq_n^T Wk_n makes it scaled dot-product attention; a U_n of rank above k can be more than that. Queries, keys and values are
// d wide in every head instead of k = d / h, so its attention takes h times the work of that of sdp.
#pragma once
#include <cmath>

#include "models/mixers/attending.h"
#include "ops/products/contract.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

struct QuadFull {
  static constexpr const char* kName = "quad_full";
  using Config = AttentionConfig;

  using Cache = Attending::Cache;  // of one head: the same keys x for all heads, and the values of all heads side by side

  Parameter u_ndD{.role = Role::matrix};
  Linear val, out;
  Attending attending;  // of one head of width d
  int64_t heads;

  QuadFull(const MixerShape& place, const Config& config)
      : val(place.d, place.d, place.bias, place.init.attention_input(place.d)),
        out(place.d, place.d, place.bias, place.init.attention_output(place.d)),
        attending(place, {1, config.window}),
        heads(config.heads) {
    u_ndD.value = Tensor({heads, place.d, place.d}), u_ndD.init = place.init.attention_input(place.d).weight;
    attending.options.scale = 1 / std::sqrt(static_cast<double>(place.d / heads));
  }

  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const { return mix(x_bcd, attending.whole(lengths_b)); }

  Cache make_cache(int64_t batch, Dtype dtype, Device device) const { return attending.make_cache(batch, dtype, device); }
  // Every head writes the new keys and values again, with the same numbers.
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    return attending.next(x_bcd.shape()[1], cache, [&](const auto& attend) { return mix(x_bcd, attend); });
  }
  int64_t positions_at_once() const { return attending.positions_at_once(); }

  // The formula around any attention: attend(q, x, v) -> [b c d] is called once for every head. It sums the values of all heads; the
  // columns of its own are what it is for. Each head reads its own columns of one q, so its gradient of q is as large as the q of all
  // heads, zeros but for these columns. (With a slice of U for every head these gradients would be small, but that of U would be rounded
  // to bf16 beside f32 masters.)
  template <class Attend> Tensor mix(const Arg& x_bcd, const Attend& attend) const {
    const int64_t d = attending.d, k = d / heads;
    const Tensor q_bcnd = contract("bcd,ndD->bcnD", x_bcd, u_ndD);
    const Tensor q_bcx = reshape(q_bcnd, {x_bcd.shape()[0], x_bcd.shape()[1], heads * d}), v_bcd = val(x_bcd);
    std::vector<Arg> of_heads;
    for (int64_t n = 0; n < heads; ++n) of_heads.push_back(slice(attend(Rows{q_bcx, n * d, d}, Rows{x_bcd}, Rows{v_bcd}), 2, n * k, k));
    return out(heads == 1 ? of_heads[0] : Arg(concatenate(of_heads, 2)));
  }

  template <class V> void visit(V&& v) { v("u_metric", u_ndD), v("val", val), v("out", out); }
};

static_assert(Mixer<QuadFull>);

}  // namespace ricci
