// The definition of attention once more, every value stored as S and computed in f32: what a low precision may cost.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attention/kernels.h"
#include "tests/ops/attention/attention_cases.h"

namespace ricci {

template <class S> struct LowPrecision {
  static float rounded(float x) { return static_cast<float>(S(x)); }
  const Case& of;
  attention_kernels::WeightDropout dropout;

  static ForwardAndBackward run(const Case& of, const Tensor& qkv, const Tensor& dy) {
    set_random_state({5, 1});  // as in run of attention_cases.h
    return LowPrecision{of, attention_kernels::draw_dropout(of.dropout, of.b * of.heads)}.all(qkv, dy);
  }

  ForwardAndBackward all(const Tensor& qkv, const Tensor& dy) const {
    const int64_t c = of.c, d = of.heads * of.width;
    const ForwardAndBackward out{Tensor({of.b, c, d}), zeros({of.b, c, 3 * d}, Dtype::f32, Device::cpu)};
    for (int64_t head = 0; head < of.b * of.heads; ++head) {
      const auto at = [&](const Tensor& t, int64_t position, int64_t block) {
        return t.data<float>() + (head / of.heads * c + position) * t.shape()[2] + block * d + head % of.heads * of.width;
      };
      const auto input = [&](int64_t s, int64_t block) { return at(qkv, s, block); };
      const auto gradient = [&](int64_t s, int64_t block) { return at(out.dqkv, s, block); };
      for (int64_t t = 0; t < c; ++t) one_query(head, t, input, at(dy, t, 0), at(out.y, t, 0), gradient);
    }
    for (int64_t i = 0; i < out.dqkv.size(); ++i) out.dqkv.data<float>()[i] = rounded(out.dqkv.data<float>()[i]);
    return out;
  }

  float dot(const float* a, const float* b) const {
    float sum = 0;
    for (int64_t x = 0; x < of.width; ++x) sum += a[x] * b[x];
    return sum;
  }
  float factor(int64_t head, int64_t t, int64_t s) const {
    return dropout.active() ? dropout.factor<float>(dropout.row(head, t, of.c) + s) : 1;
  }

  template <class At, class GradientAt>
  void one_query(int64_t head, int64_t t, At at, const float* dy, float* y, GradientAt gradient) const {
    const float scale = 1 / std::sqrt(static_cast<float>(of.width));
    const int64_t keys = of.lengths.empty() ? of.c : of.lengths[static_cast<size_t>(head / of.heads)];
    const int64_t first = of.window ? std::max<int64_t>(0, t - of.window + 1) : 0, end = of.causal ? std::min(t + 1, keys) : keys;
    std::vector<float> p(static_cast<size_t>(end));
    float largest = -HUGE_VALF, sum = 0, mean = 0;
    const auto weight = [&](int64_t s) -> float& { return p[static_cast<size_t>(s)]; };
    for (int64_t s = first; s < end; ++s) largest = std::max(largest, weight(s) = rounded(dot(at(t, 0), at(s, 1)) * scale));
    for (int64_t s = first; s < end; ++s) sum += weight(s) = std::exp(weight(s) - largest);
    for (int64_t s = first; s < end; ++s) weight(s) = rounded(weight(s) / sum);
    for (int64_t x = 0; x < of.width; ++x) {
      float total = 0;
      for (int64_t s = first; s < end; ++s) total += rounded(weight(s) * factor(head, t, s)) * at(s, 2)[x];
      y[x] = rounded(total);
    }
    for (int64_t s = first; s < end; ++s) mean += weight(s) * factor(head, t, s) * dot(dy, at(s, 2));
    for (int64_t s = first; s < end; ++s) {
      const float dropped = rounded(weight(s) * factor(head, t, s));
      const float ds = rounded(weight(s) * (rounded(dot(dy, at(s, 2)) * factor(head, t, s)) - mean)) * scale;
      for (int64_t x = 0; x < of.width; ++x) {
        gradient(t, 0)[x] += ds * at(s, 1)[x];
        gradient(s, 1)[x] += ds * at(t, 0)[x];
        gradient(s, 2)[x] += dropped * dy[x];
      }
    }
  }
};

}  // namespace ricci
