// The mixers `quad`, `p_only`, `metric` and `metric_psd`: attention whose scores are a form of one projection
//   p = x W_in^T,   r_bncC = p_bcn M_n p_bCn^T / sqrt(k),   s = softmax_C(r | visible),   y = merge(s v) W_out^T
// with v = p, or v = x W_val^T where value_proj says so. M_n is a k x k matrix for every head:
//   quad         any                           p_only       the identity
//   metric       symmetric, packed             metric_psd   L L^T, L packed: no p_c scores itself below 0
// With q = p M this is attention with p as its keys and its values: one stored tensor serves both, and decoding keeps p alone.
#pragma once
#include "models/mixers/attending.h"
#include "ops/metric/metric.h"
#include "ops/products/contract.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

struct FormConfig : AttentionConfig {
  bool value_proj = false;
  bool operator==(const FormConfig&) const = default;
};

inline void visit_fields(FormConfig& c, const Fields& field) {
  visit_fields(static_cast<AttentionConfig&>(c), field);
  field("value_proj", c.value_proj, "the values are a projection of their own, not that of the keys");
}

inline void check(const FormConfig& c, const MixerShape& place) { check(static_cast<const AttentionConfig&>(c), place); }

// A form makes queries of the projection. whole() are its matrices [n k k]; empty: the identity.
struct PackedForm {
  Parameter m{.role = Role::matrix};
  Triangle triangle;
  PackedForm(Triangle of, int64_t heads, int64_t k) : triangle(of) {
    m.value = Tensor({heads, packed_size(k)});
    m.init = {Init::Kind::normal, 0.02, of == Triangle::upper ? Diagonal::of_packed_upper : Diagonal::of_packed_lower};
  }
  Tensor queries(const Arg& p_bcd) const { return times_metric(p_bcd, m, triangle); }
  Tensor whole() const { return whole_metric(m.value, triangle); }
};

struct SymmetricForm : PackedForm {
  static constexpr const char* kName = "metric";
  SymmetricForm(int64_t heads, int64_t k) : PackedForm(Triangle::upper, heads, k) {}
  template <class V> void visit(V&& v) { v("m_metric", m); }
};

struct FactoredForm : PackedForm {
  static constexpr const char* kName = "metric_psd";
  FactoredForm(int64_t heads, int64_t k) : PackedForm(Triangle::lower, heads, k) {}
  template <class V> void visit(V&& v) { v("l_metric", m); }
};

struct GeneralForm {
  static constexpr const char* kName = "quad";
  Parameter a_nkK{.role = Role::matrix, .init = {Init::Kind::normal, 0.02, Diagonal::of_matrices}};
  GeneralForm(int64_t heads, int64_t k) { a_nkK.value = Tensor({heads, k, k}); }
  Tensor queries(const Arg& p_bcd) const {
    const Shape& a = a_nkK.value.shape();
    const Tensor p_bcnk = reshape(p_bcd, {p_bcd.shape()[0], p_bcd.shape()[1], a[0], a[1]});
    return reshape(contract("bcnk,nkK->bcnK", p_bcnk, a_nkK), p_bcd.shape());
  }
  Tensor whole() const { return a_nkK.value; }
  template <class V> void visit(V&& v) { v("a_metric", a_nkK); }
};

struct IdentityForm {
  static constexpr const char* kName = "p_only";
  IdentityForm(int64_t, int64_t) {}
  Tensor queries(const Arg& p_bcd) const { return p_bcd; }
  Tensor whole() const { return {}; }
  template <class V> void visit(V&&) {}
};

template <class Form> struct FormAttention {
  static constexpr const char* kName = Form::kName;
  using Config = FormConfig;

  using Cache = Attending::Cache;  // the keys are projections

  Linear proj_in, val, out;  // val is empty where the values are the keys
  Form form;
  Attending attending;

  FormAttention(const MixerShape& place, const Config& config)
      : proj_in(place.d, place.d, place.bias, place.init.attention_input(place.d)),
        out(place.d, place.d, place.bias, place.init.attention_output(place.d)),
        form(config.heads, place.d / config.heads),
        attending(place, config) {
    if (config.value_proj) val = Linear(place.d, place.d, place.bias, place.init.attention_input(place.d));
  }

  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const { return mix(x_bcd, attending.whole(lengths_b)); }

  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    return attending.make_cache(batch, dtype, device, !val.weight.value);
  }
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    return attending.next(x_bcd.shape()[1], cache, [&](const auto& attend) { return mix(x_bcd, attend); });
  }
  int64_t positions_at_once() const { return attending.positions_at_once(); }

  // The formula around any attention: attend(q, p, v) -> [b c d].
  template <class Attend> Tensor mix(const Arg& x_bcd, const Attend& attend) const {
    const Tensor p_bcd = proj_in(x_bcd);
    const Rows p{p_bcd}, v = val.weight.value ? Rows{val(x_bcd)} : p;
    return out(attend(Rows{form.queries(p_bcd)}, p, v));
  }

  template <class V> void visit(V&& v) { v("proj_in", proj_in), form.visit(v), v("val", val), v("out", out); }
};

using Quad = FormAttention<GeneralForm>;
using POnly = FormAttention<IdentityForm>;
using Metric = FormAttention<SymmetricForm>;
using MetricPsd = FormAttention<FactoredForm>;

static_assert(Mixer<Quad> && Mixer<POnly> && Mixer<Metric> && Mixer<MetricPsd>);

}  // namespace ricci
