// The mixer `sdp`: multi-head scaled dot-product attention, causal or not, with an optional window.
//   q | k | v = x W_qkv^T,   r_bncC = q_bcnk . k_bCmk / sqrt(k),   p = softmax_C(r | visible),   y = merge(p v) W_proj^T
// With kv_heads = g the query head n reads the key and value head m = n div (h / g) (Ainslie et al. 2023). With qk_norm the q and k of
// every head are RMS-normalised before (Henry et al. 2020). With positions: rope they turn, after that, by the angles of their positions.
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

  template <class Attend> Tensor operator()(const Arg& x_bcd, const Attend& attend, int64_t first) const {
    const Tensor qkv_bcx = qkv(x_bcd);
    const int64_t q = heads * width, kv = kv_heads * width;
    const Rows values{qkv_bcx, q + kv, kv};
    if (!q_norm.weight.value && !rope.table) return proj(attend(Rows{qkv_bcx, 0, q}, Rows{qkv_bcx, q, kv}, values));
    Tensor table_Cr;
    if (rope.table) table_Cr = rope.table->rows(first + x_bcd.shape()[1], rope.columns(width), x_bcd.dtype(), x_bcd.device());
    const Tensor turned_bcx = rotary(qkv_bcx, {heads, kv_heads, width}, q_norm.weight, k_norm.weight, table_Cr, first, q_norm.eps);
    return proj(attend(Rows{turned_bcx, 0, q}, Rows{turned_bcx, q, kv}, values));
  }

  Linear qkv, proj;          // qkv.weight ((h + 2g) k, d): row blocks q | k | v, head-major inside each block; proj.weight (d, h k)
  LayerNorm q_norm, k_norm;  // without weights: there is no norm
  int64_t heads, kv_heads, width;
  Rope rope;

  DotProduct(const MixerShape& shape, const Config& config)
      : heads(config.heads), kv_heads(config.key_heads()), width(config.width(shape.d)), rope(shape.rope) {
    const bool with_bias = config.qkv_bias.value_or(shape.bias);
    qkv = Linear(shape.d, (heads + 2 * kv_heads) * width, with_bias, shape.init.packed_projection(shape.d));
    proj = Linear(heads * width, shape.d, shape.bias, shape.init.attention_output(heads * width));
    for (LayerNorm* norm : {&q_norm, &k_norm})
      if (config.qk_norm) *norm = LayerNorm(width, {.kind = NormKind::rms, .eps = shape.norm_eps});
  }

  static constexpr const char* kName = "sdp";
  static constexpr bool kTurns = true;
  Forms forms() const {
    if (q_norm.weight.value) return {};  // normalised: the scores are no products of two positions
    Forms forms = query_key_forms(qkv.weight.value.rows(0, heads * width), qkv.weight.value.rows(heads * width, kv_heads * width), heads);
    if (rope.table) forms.name = "Wq Wk^T without the rotation";
    forms.turned = rope.table != nullptr;
    return forms;
  }
  template <class V> void visit(V&& v) { v("qkv", qkv, "q_norm", q_norm, "k_norm", k_norm, "proj", proj); }
};

inline void visit_fields(SdpConfig& c, const Fields& field) {
  visit_fields(static_cast<AttentionConfig&>(c), field);
  field("kv_heads", c.kv_heads, "heads of keys and values, each shared by heads / kv_heads query heads; null: heads").in(1, kLargestSize);
  field("head_width", c.head_width, "columns of a head; null: d / heads").in(1, kLargestSize);
  field("qk_norm", c.qk_norm, "the queries and keys of every head are RMS-normalised, with a gain for queries and one for keys");
  field("qkv_bias", c.qkv_bias, "the map to queries, keys and values has a bias; null: as bias");
}

inline void check(const SdpConfig& c, const MixerShape& shape) {
  if (!c.head_width) check(static_cast<const AttentionConfig&>(c), shape);
  if (c.heads % c.key_heads()) fail("model.kv_heads: {} does not divide heads = {}", {c.key_heads(), c.heads});
  if (c.heads * c.width(shape.d) > kLargestSize) fail("model.head_width: {} columns in {} heads are too many", {c.width(shape.d), c.heads});
  if (const int64_t r = shape.rope.columns(c.width(shape.d)); shape.rope.table && (r < 2 || r % 2))
    fail("model.rope_fraction: {} of heads of {} columns are {} columns, expected an even number, 2 or more",
        {shape.rope.fraction, c.width(shape.d), r});
}

using Sdp = Attention<DotProduct>;
static_assert(Mixer<Sdp>);

}  // namespace ricci
