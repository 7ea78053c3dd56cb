// Metric-tensor attention. sdp compares two projections, q and k. Here one projection p is compared with itself by a learned k x k matrix
// M_n for each head, as a metric tensor measures vectors:
//   p = x W_in^T,   r_bncC = p_bcn M_n p_bCn^T / sqrt(k),   s = softmax_C(r | visible),   y = merge(s v) W_out^T
// v = p, or v = x W_val^T with value_proj. The mixers differ in M_n:
//   quad         any matrix                    p_only       the identity
//   metric       symmetric, packed             metric_psd   L L^T, L packed: a position never scores itself below 0
// No separate kernel is needed: with q = p M, this is attention with keys p. If the values are also p, the cache contains only p and is
// half as large as sdp's.
#pragma once
#include "models/mixers/attention.h"
#include "ops/metric/metric.h"

namespace ricci {

struct FormConfig : AttentionConfig {
  bool value_proj = false;
};

template <class Form> struct FormProjection {
  using Config = FormConfig;

  template <class Attend> Tensor operator()(const Arg& x_bcd, int64_t, const Attend& attend) const {
    const Tensor p_bcd = proj_in(x_bcd);
    const ColumnSlice p{p_bcd}, v = val.weight.value ? ColumnSlice{val(x_bcd)} : p;
    return out(attend(ColumnSlice{form.queries(p_bcd)}, p, v));
  }

  Linear proj_in, val, out;  // val is empty if the values are the keys
  Form form;
  int64_t heads, width;

  FormProjection(const MixerShape& shape, const Config& config)
      : proj_in(shape.d, shape.d, shape.bias, shape.init.attention_input(shape.d)),
        out(shape.d, shape.d, shape.bias, shape.init.attention_output(shape.d)),
        form(config.heads, shape.d / config.heads),
        heads(config.heads),
        width(shape.d / config.heads) {
    if (config.value_proj) val = Linear(shape.d, shape.d, shape.bias, shape.init.attention_input(shape.d));
  }

  static constexpr const char* kName = Form::kName;
  HeadShape head_shape() const { return {heads, heads, width}; }
  bool values_are_keys() const { return !val.weight.value; }
  Forms forms() const {
    const Tensor m_nkK = form.whole();
    return {.name = Form::kSymmetric ? "metric tensor" : "matrix of the scores",
        .m_nkK = m_nkK ? on_host(m_nkK) : Tensor(),
        .symmetric = Form::kSymmetric,
        .positive = Form::kPositive};
  }
  std::array<Tensor, 2> metric_maps(const Arg& x_bcd) const requires(Form::kSymmetric) {
    const Tensor p_bcd = proj_in(x_bcd);
    return {form.queries(p_bcd), p_bcd};
  }
  template <class V> void visit(V&& v) {
    v("proj_in", proj_in);
    form.visit(v);
    v("val", val, "out", out);
  }
};

// A form defines the matrix M: queries() returns p M, and whole() returns the matrices [n k k], or nothing for the identity.
struct PackedForm {
  static constexpr bool kSymmetric = true;
  Tensor queries(const Arg& p_bcd) const { return times_metric(p_bcd, m, triangle); }
  Tensor whole() const { return whole_metric(m.value, triangle); }

  Parameter m{.role = Role::matrix};
  Triangle triangle;
  PackedForm(Triangle stored, int64_t heads, int64_t k) : triangle(stored) {
    m.value = Tensor({heads, packed_size(k)});
    m.init = {Init::Kind::normal, 0.02, stored == Triangle::upper ? Diagonal::of_packed_upper : Diagonal::of_packed_lower};
  }
};

struct SymmetricForm : PackedForm {
  static constexpr const char* kName = "metric";
  static constexpr bool kPositive = false;
  SymmetricForm(int64_t heads, int64_t k) : PackedForm(Triangle::upper, heads, k) {}
  template <class V> void visit(V&& v) { v("m_metric", m); }
};

struct FactoredForm : PackedForm {
  static constexpr const char* kName = "metric_psd";
  static constexpr bool kPositive = true;
  FactoredForm(int64_t heads, int64_t k) : PackedForm(Triangle::lower, heads, k) {}
  template <class V> void visit(V&& v) { v("l_metric", m); }
};

struct GeneralForm {
  static constexpr const char* kName = "quad";
  static constexpr bool kSymmetric = false, kPositive = false;
  Tensor queries(const Arg& p_bcd) const {
    const Shape& a = a_nkK.value.shape();
    const Tensor p_bcnk = reshape(p_bcd, {p_bcd.shape()[0], p_bcd.shape()[1], a[0], a[1]});
    return reshape(contract("bcnk,nkK->bcnK", p_bcnk, a_nkK), p_bcd.shape());
  }
  Tensor whole() const { return a_nkK.value; }

  Parameter a_nkK{.role = Role::matrix, .init = {Init::Kind::normal, 0.02, Diagonal::of_matrices}};
  GeneralForm(int64_t heads, int64_t k) {
    a_nkK.value = Tensor({heads, k, k});
    a_nkK.row_blocks.assign(static_cast<size_t>(heads), k);
  }
  template <class V> void visit(V&& v) { v("a_metric", a_nkK); }
};

struct IdentityForm {
  static constexpr const char* kName = "p_only";
  static constexpr bool kSymmetric = true, kPositive = true;
  Tensor queries(const Arg& p_bcd) const { return p_bcd; }
  Tensor whole() const { return {}; }
  IdentityForm(int64_t, int64_t) {}
  template <class V> void visit(V&&) {}
};

inline void visit_fields(FormConfig& c, const Fields& field) {
  visit_fields(static_cast<AttentionConfig&>(c), field);
  field("value_proj", c.value_proj, "values have a separate projection (false: they use the projection of the keys)");
}

inline void check(const FormConfig& c, const MixerShape& shape) { check(static_cast<const AttentionConfig&>(c), shape); }

using Quad = Attention<FormProjection<GeneralForm>>;
using POnly = Attention<FormProjection<IdentityForm>>;
using Metric = Attention<FormProjection<SymmetricForm>>;
using MetricPsd = Attention<FormProjection<FactoredForm>>;

static_assert(Mixer<Quad> && Mixer<POnly> && Mixer<Metric> && Mixer<MetricPsd>);

}  // namespace ricci
