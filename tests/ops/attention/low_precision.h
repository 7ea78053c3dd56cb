// The definition of attention once more, every value stored as S and computed in f32: what a low precision may cost.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attention/kernels.h"
#include "tests/ops/attention/cases.h"

namespace ricci {

template <class S> class LowPrecision {
 public:
  static ForwardAndBackward run(const Case& of, const std::vector<Tensor>& inputs_f32, const Tensor& dy_f32) {
    set_random_state({5, 1});  // as in run of cases.h
    const auto [q, k, v] = of.views(inputs_f32);
    const AttentionOptions options = of.options();  // which the problem has a pointer into
    attention_kernels::Problem problem = attention_kernels::check("low precision", q, k, v, of.sees, options).problem;
    problem.dropout = attention_kernels::draw_dropout(of.dropout, of.b * of.heads);
    return LowPrecision(of, problem).all(inputs_f32, dy_f32);
  }

 private:
  LowPrecision(const Case& of, const attention_kernels::Problem& problem) : of_(of), problem_(problem) {}

  static float rounded(float x) { return static_cast<float>(S(x)); }

  // A head's vectors by position.
  struct Vectors {
    float* first;
    int64_t row;
    float* operator[](int64_t t) const { return first + t * row; }
  };
  Vectors vectors(const Rows& rows, int64_t head, int64_t group = 1) const {
    auto view = attention_kernels::head_rows<float>(rows);
    view.group = group;
    return {view.of_head(problem_, head), view.row};
  }

  ForwardAndBackward all(const std::vector<Tensor>& inputs, const Tensor& dy) const {
    ForwardAndBackward out{like(dy), {}};
    for (const Tensor& t : inputs) out.gradients.push_back(zeros_like(t));
    const auto [q, k, v] = of_.views(inputs);
    const auto [dq, dk, dv] = of_.views(out.gradients);
    for (int64_t head = 0; head < of_.b * of_.heads; ++head) {
      const Vectors y = vectors({out.y}, head), dy_t = vectors({dy}, head);
      const int64_t group = problem_.group;
      const Head h{vectors(q, head), vectors(k, head, group), vectors(v, head, group), vectors(dq, head), vectors(dk, head, group),
          vectors(dv, head, group)};
      for (int64_t t = 0; t < of_.c; ++t) one_query(head, t, h, dy_t[t], y[t]);
    }
    for (const Tensor& t : out.gradients)
      for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] = rounded(t.data<float>()[i]);
    return out;
  }

  float dot(const float* a, const float* b) const {
    float sum = 0;
    for (int64_t x = 0; x < of_.width; ++x) sum += a[x] * b[x];
    return sum;
  }
  float factor(int64_t head, int64_t t, int64_t j) const {
    return problem_.dropout.active() ? problem_.dropout.factor<float>(problem_.weight(head, t) + j) : 1;
  }

  struct Head {
    Vectors q, k, v, dq, dk, dv;
  };
  void one_query(int64_t head, int64_t t, const Head& h, const float* dy, float* y) const {
    const float scale = static_cast<float>(problem_.scale);
    std::vector<float> p(static_cast<size_t>(of_.key_count()));
    std::vector<int64_t> seen;
    const int64_t start = of_.starts.empty() ? 0 : of_.starts[static_cast<size_t>(head / of_.heads * of_.c + t)];
    for (int64_t j = 0; j < problem_.keys_of(head); ++j)
      if (of_.sees.visible(t, j) && j >= start) seen.push_back(j);
    float largest = -HUGE_VALF, sum = 0, mean = 0;
    const auto weight = [&](int64_t j) -> float& { return p[static_cast<size_t>(j)]; };
    for (int64_t j : seen) largest = std::max(largest, weight(j) = rounded(dot(h.q[t], h.k[j]) * scale));
    for (int64_t j : seen) sum += weight(j) = std::exp(weight(j) - largest);
    for (int64_t j : seen) weight(j) = rounded(weight(j) / sum);
    for (int64_t x = 0; x < of_.width; ++x) {
      float total = 0;
      for (int64_t j : seen) total += rounded(weight(j) * factor(head, t, j)) * h.v[j][x];
      y[x] = rounded(total);
    }
    for (int64_t j : seen) mean += weight(j) * factor(head, t, j) * dot(dy, h.v[j]);
    for (int64_t j : seen) {
      const float dropped = rounded(weight(j) * factor(head, t, j));
      const float ds = rounded(weight(j) * (rounded(dot(dy, h.v[j]) * factor(head, t, j)) - mean)) * scale;
      for (int64_t x = 0; x < of_.width; ++x) {
        h.dq[t][x] += ds * h.k[j][x];
        h.dk[j][x] += ds * h.q[t][x];
        h.dv[j][x] += dropped * dy[x];
      }
    }
  }

  const Case& of_;
  attention_kernels::Problem problem_;
};

// y, and the columns of each view in the gradients, have at most twice the error that the definition has in that precision.
template <class S> void check_errors(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy, const ForwardAndBackward& got) {
  const std::vector<Tensor> exact_inputs = as(inputs, Dtype::f64, Device::cpu);
  const Tensor dy64 = to(convert(dy, Dtype::f64), Device::cpu);
  const ForwardAndBackward exact = run(naive_attention, of, exact_inputs, dy64);
  const ForwardAndBackward naive = LowPrecision<S>::run(of, as(exact_inputs, Dtype::f32, Device::cpu), convert(dy64, Dtype::f32));
  CHECK(got.y.dtype() == dtype_of<S>);
  CHECK(distance(got.y, exact.y) <= 2 * distance(naive.y, exact.y));
  const Three got_views = of.views(got.gradients), exact_views = of.views(exact.gradients), naive_views = of.views(naive.gradients);
  for (size_t view : {0, 1, 2}) {
    CAPTURE(view);
    const ViewElement a(got_views[view]), b(exact_views[view]), c(naive_views[view]);
    double got_error = 0, naive_error = 0;
    for (int64_t i = 0; i < of.b; ++i)
      for (int64_t t = 0; t < (view == 0 ? of.c : of.key_count()); ++t)
        for (int64_t x = 0; x < (view == 0 ? of.d() : of.kv()); ++x) {
          raise_to(got_error, std::abs(a(i, t, x) - b(i, t, x)));
          raise_to(naive_error, std::abs(c(i, t, x) - b(i, t, x)));
        }
    CHECK(got_error <= 2 * naive_error);
  }
}

}  // namespace ricci
