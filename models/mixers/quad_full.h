// The mixer `quad_full`: attention whose scores are a quadratic form of the whole input for every head,
//   r_bncC = x_bc U_n x_bC^T / sqrt(k),   s = softmax_C(r | visible),   y = merge(s v) W_out^T,   v = x W_val^T
// U_n = Wq_n^T Wk_n makes it scaled dot-product attention; a U_n of rank above k can be more than that. Queries, keys and values are
// d wide in every head instead of k = d / h, so its attention takes h times the work of sdp's.
#pragma once
#include <cmath>

#include "models/mixers/attention.h"

namespace ricci {

struct InputForm {
  using Config = AttentionConfig;

  // attend is called once for every head, as one head of width d with the same keys x. Each call sums the values of all heads with one
  // head's scores, and we keep this head's columns. Each head reads its own columns of one q, so its gradient of q is as large as the q
  // of all heads, zeros but for these columns. (With a slice of U for every head these gradients would be small, but the gradient of U
  // would be rounded to bf16 beside f32 masters.) In decoding every head writes the new keys and values again, with the same numbers.
  template <class Attend> Tensor operator()(const Arg& x_bcd, const Attend& attend) const {
    const int64_t d = val.weight.value.shape()[0], k = d / heads;
    const Tensor q_bcnd = contract("bcd,ndD->bcnD", x_bcd, u_ndD);
    const Tensor q_bcx = reshape(q_bcnd, {x_bcd.shape()[0], x_bcd.shape()[1], heads * d}), v_bcd = val(x_bcd);
    std::vector<Arg> y_n;
    for (int64_t n = 0; n < heads; ++n) y_n.push_back(slice(attend(Rows{q_bcx, n * d, d}, Rows{x_bcd}, Rows{v_bcd}), 2, n * k, k));
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
    u_ndD.init = shape.init.attention_input(shape.d).weight;
  }

  static constexpr const char* kName = "quad_full";
  static int64_t call_heads() { return 1; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(val.weight.value.shape()[0] / heads)); }
  Forms forms() const { return {.m_nkK = on_host(u_ndD.value), .of_input = true}; }
  template <class V> void visit(V&& v) { v("u_metric", u_ndD, "val", val, "out", out); }
};

using QuadFull = Attention<InputForm>;
static_assert(Mixer<QuadFull>);

}  // namespace ricci
