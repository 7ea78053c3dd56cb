// The mixer `sdp`: multi-head scaled dot-product attention, causal or not, with an optional window.
//   q | k | v = x W_qkv^T,   r_bncC = q_bcnk . k_bCmk / sqrt(k),   p = softmax_C(r | visible),   y = merge(p v) W_proj^T
// The scores are divided by sqrt(k): a sum of k products grows with k, and without the division, the softmax would choose only one key.
// With kv_heads = g, query head n uses key and value head m = n div (h / g), so the cache is h / g times smaller (Ainslie et al. 2023).
// With qk_norm, the q and k of every head are RMS-normalized (Henry et al. 2020). With rotary positions, q and k are then rotated by their
// position.
#pragma once
#include "models/mixers/attention.h"
#include "ops/rotary/rotary.h"

namespace ricci {

struct SdpConfig : AttentionConfig {
  std::optional<int64_t> kv_heads{}, head_width{};
  bool qk_norm = false;
  std::optional<bool> qkv_bias{};

  int64_t key_heads() const { return kv_heads.value_or(heads); }
  int64_t width(int64_t d) const { return head_width.value_or(d / heads); }
};

struct DotProduct {
  using Config = SdpConfig;

  // `first` is the position of the first row: 0 for full sequences, above 0 in decoding. `attend` applies the window, the padding and the
  // cache.
  template <class Attend> Tensor operator()(const Arg& x_bcd, int64_t first, const Attend& attend) const {
    const int64_t q = heads * width, kv = kv_heads * width;  // columns
    const Tensor qkv_bcx = qkv(x_bcd), qk_bcx = normed_and_turned(qkv_bcx, first);
    return proj(attend(ColumnSlice{qk_bcx, 0, q}, ColumnSlice{qk_bcx, q, kv}, ColumnSlice{qkv_bcx, q + kv, kv}));
  }
  // Returns q | k after qk_norm and rope, or qkv itself if both are off.
  Tensor normed_and_turned(const Tensor& qkv_bcx, int64_t first) const {
    if (!q_norm.weight.value && !rope.table) return qkv_bcx;
    Tensor table_Cr;
    if (rope.table) table_Cr = rope.table->rows(first + qkv_bcx.shape()[1], rope.columns(width), qkv_bcx.dtype(), qkv_bcx.device());
    return rotary(qkv_bcx, {heads, kv_heads, width}, q_norm.weight, k_norm.weight, table_Cr, first, q_norm.eps);
  }

  Linear qkv, proj;          // qkv.weight ((h + 2g) k, d): rows q | k | v, each head by head; proj.weight (d, h k)
  LayerNorm q_norm, k_norm;  // no weights without qk_norm
  int64_t heads, kv_heads, width;
  Rope rope;

  DotProduct(const MixerShape& shape, const Config& config)
      : heads(config.heads), kv_heads(config.key_heads()), width(config.width(shape.d)), rope(shape.rope) {
    const bool with_bias = config.qkv_bias.value_or(shape.bias);
    qkv = Linear(shape.d, (heads + 2 * kv_heads) * width, with_bias, shape.init.packed_projection(shape.d));
    qkv.weight.row_blocks = {heads * width, kv_heads * width, kv_heads * width};
    proj = Linear(heads * width, shape.d, shape.bias, shape.init.attention_output(heads * width));
    for (LayerNorm* norm : {&q_norm, &k_norm})
      if (config.qk_norm) *norm = LayerNorm(width, {.kind = NormKind::rms, .eps = shape.norm_eps});
  }

  HeadShape head_shape() const { return {heads, kv_heads, width}; }
  bool values_are_keys() const { return false; }

  static constexpr const char* kName = "sdp";
  static constexpr bool kTurns = true;
  Forms forms() const {
    if (q_norm.weight.value) return {};  // after a norm, the scores are not a bilinear form of two positions
    Forms forms = query_key_forms(qkv.weight.value.rows(0, heads * width), qkv.weight.value.rows(heads * width, kv_heads * width), heads);
    if (rope.table) forms.name = "Wq Wk^T without the rotation";
    forms.turned = rope.table != nullptr;
    return forms;
  }
  template <class V> void visit(V&& v) { v("qkv", qkv, "q_norm", q_norm, "k_norm", k_norm, "proj", proj); }
};

inline void visit_fields(SdpConfig& c, const Fields& field) {
  visit_fields(static_cast<AttentionConfig&>(c), field);
  field("kv_heads", c.kv_heads, "key and value heads, each shared by heads / kv_heads query heads (null: heads)").in(1, kLargestSize);
  field("head_width", c.head_width, "columns of a head (null: d / heads)").in(1, kLargestSize);
  field("qk_norm", c.qk_norm, "RMS norm of every head's queries and keys, with one gain for queries and one for keys");
  field("qkv_bias", c.qkv_bias, "the map to queries, keys and values has a bias (null: the value of bias)");
}

inline void check(const SdpConfig& c, const MixerShape& shape) {
  if (!c.head_width) check(static_cast<const AttentionConfig&>(c), shape);
  if (c.heads % c.key_heads()) fail("model.kv_heads: {} does not divide heads = {}", {c.key_heads(), c.heads});
  if (c.heads * c.width(shape.d) > kLargestSize) fail("model.head_width: {} columns in {} heads are too many", {c.width(shape.d), c.heads});
  if (const int64_t r = shape.rope.columns(c.width(shape.d)); shape.rope.table && (r < 2 || r % 2))
    fail("model.rope_fraction: {} of a head's {} columns is {} columns, expected an even number above 0",
        {shape.rope.fraction, c.width(shape.d), r});
}

using Sdp = Attention<DotProduct>;
static_assert(Mixer<Sdp>);

}  // namespace ricci
