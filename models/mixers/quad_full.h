// The mixer `quad_full`: attention with scores that are a quadratic form of the full input for every head,
//   r_bncC = x_bc U_n x_bC^T / sqrt(k),   s = softmax_C(r | visible),   y = merge(s v) W_out^T,   v = x W_val^T
// With U_n = Wq_n^T Wk_n, this is scaled dot-product attention; a U_n of rank above k can express more. Queries, keys and values are d wide
// in every head instead of k = d / h, so the attention costs h times as much as in sdp.
#pragma once
#include <cmath>

#include "models/mixers/attention.h"

namespace ricci {

struct InputForm {
  using Config = AttentionConfig;

  // attend is called once for every head, as one head of width d with the keys x. Each call sums the values of all heads with one head's
  // scores, and only this head's columns are kept. The gradient of q from each call is as large as the q of all heads and consists mostly
  // of zeros. (With a slice of U per head it would be small, but the gradient of U would be rounded to bf16.)
  template <class Attend> Tensor operator()(const Arg& x_bcd, int64_t, const Attend& attend) const {
    const int64_t d = val.weight.value.shape()[0], k = d / heads;
    const Tensor q_bcnd = contract("bcd,ndD->bcnD", x_bcd, u_ndD);
    const Tensor q_bcx = reshape(q_bcnd, {x_bcd.shape()[0], x_bcd.shape()[1], heads * d}), v_bcd = val(x_bcd);
    std::vector<Arg> y_n;
    for (int64_t n = 0; n < heads; ++n)
      y_n.push_back(slice(attend(ColumnSlice{q_bcx, n * d, d}, ColumnSlice{x_bcd}, ColumnSlice{v_bcd}), 2, n * k, k));
    return out(heads == 1 ? y_n[0] : Arg(concatenate(y_n, 2)));
  }

  Parameter u_ndD{.role = Role::matrix};
  Linear val, out;
  int64_t heads;

  InputForm(const MixerShape& shape, const Config& config)
      : val(shape.d, shape.d, shape.bias, shape.init.attention_input(shape.d)),
        out(shape.d, shape.d, shape.bias, shape.init.attention_output(shape.d)),
        heads(config.heads) {
    u_ndD.value = Tensor({heads, shape.d, shape.d});
    u_ndD.row_blocks.assign(static_cast<size_t>(heads), shape.d);
    u_ndD.init = shape.init.attention_input(shape.d).weight;
  }

  static constexpr const char* kName = "quad_full";
  HeadShape head_shape() const {
    const int64_t d = val.weight.value.shape()[0];
    return {1, 1, d, 1 / std::sqrt(static_cast<double>(d / heads)), heads};
  }
  bool values_are_keys() const { return false; }
  Forms forms() const { return {.m_nkK = on_host(u_ndD.value), .of_input = true}; }
  template <class V> void visit(V&& v) { v("u_metric", u_ndD, "val", val, "out", out); }
};

using QuadFull = Attention<InputForm>;
static_assert(Mixer<QuadFull>);

}  // namespace ricci
