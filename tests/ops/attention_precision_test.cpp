// Attention in f32 and bf16 is compared with the definition carried out in the same precision: both with the exact values.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/ops/attention_cases.h"

using namespace ricci;

namespace {

// The definition again, every value stored as S and computed in f32: what a low-precision attention may cost.
template <class S> struct LowPrecision {
  static float rounded(float x) { return static_cast<float>(S(x)); }

  static ForwardAndBackward run(const Case& of, const Tensor& qkv, const Tensor& dy) {
    const int64_t c = of.c, d = of.heads * of.width;
    ForwardAndBackward out{Tensor({of.b, c, d}), zeros({of.b, c, 3 * d}, Dtype::f32, Device::cpu)};
    for (int64_t i = 0; i < of.b; ++i)
      for (int64_t n = 0; n < of.heads; ++n) {
        auto at = [&](const Tensor& t, int64_t position, int64_t block) {
          return t.data<float>() + (i * c + position) * t.shape()[2] + block * d + n * of.width;
        };
        for (int64_t t = 0; t < c; ++t)
          one_query(
              of, t, [&](int64_t s, int64_t block) { return at(qkv, s, block); }, at(dy, t, 0), at(out.y, t, 0),
              [&](int64_t s, int64_t block) { return at(out.dqkv, s, block); });
      }
    for (int64_t i = 0; i < out.dqkv.size(); ++i) out.dqkv.data<float>()[i] = rounded(out.dqkv.data<float>()[i]);
    return out;
  }

  template <class At, class GradientAt>
  static void one_query(const Case& of, int64_t t, At at, const float* dy, float* y, GradientAt gradient) {
    const int64_t width = of.width;
    const float scale = 1 / std::sqrt(static_cast<float>(width));
    auto dot = [&](const float* a, const float* b) {
      float sum = 0;
      for (int64_t x = 0; x < width; ++x) sum += a[x] * b[x];
      return sum;
    };
    std::vector<float> p(static_cast<size_t>(t + 1));
    float largest = -HUGE_VALF, sum = 0, mean = 0;
    for (int64_t s = 0; s <= t; ++s) largest = std::max(largest, p[s] = rounded(dot(at(t, 0), at(s, 1)) * scale));
    for (float& p_s : p) sum += p_s = std::exp(p_s - largest);
    for (float& p_s : p) p_s = rounded(p_s / sum);
    for (int64_t x = 0; x < width; ++x) {
      float total = 0;
      for (int64_t s = 0; s <= t; ++s) total += p[s] * at(s, 2)[x];
      y[x] = rounded(total);
    }
    for (int64_t s = 0; s <= t; ++s) mean += p[s] * dot(dy, at(s, 2));
    for (int64_t s = 0; s <= t; ++s) {
      const float ds = rounded(p[s] * (rounded(dot(dy, at(s, 2))) - mean)) * scale;
      for (int64_t x = 0; x < width; ++x) {
        gradient(t, 0)[x] += ds * at(s, 1)[x];
        gradient(s, 1)[x] += ds * at(t, 0)[x];
        gradient(s, 2)[x] += p[s] * dy[x];
      }
    }
  }
};

template <class S> void check_low_precision(const Case& of, Device device) {
  const std::string dtype = name_of(dtype_of<S>);
  CAPTURE(dtype);
  CAPTURE(of.c);
  CAPTURE(of.width);
  const Tensor qkv = convert(of.qkv(), dtype_of<S>), dy = convert(of.dy(), dtype_of<S>);
  const ForwardAndBackward exact = run(naive_attention, convert(qkv, Dtype::f64), convert(dy, Dtype::f64), of.options());
  const ForwardAndBackward naive = LowPrecision<S>::run(of, convert(qkv, Dtype::f32), convert(dy, Dtype::f32));
  const ForwardAndBackward got = run(attention, to(qkv, device), to(dy, device), of.options());
  CHECK(got.y.dtype() == dtype_of<S>);
  CHECK(distance(got.y, exact.y) <= 2 * distance(naive.y, exact.y));
  CHECK(distance(got.dqkv, exact.dqkv) <= 2 * distance(naive.dqkv, exact.dqkv));
}

}  // namespace

TEST_CASE("low precision costs no more than in the definition") {
  on_every_device([](Device device) {
    const std::vector<Case> cases = {{1, 65, 2, 32, true, 0}, {1, 100, 1, 64, true, 0}, {1, 33, 1, 128, true, 0}};
    for (const Case& of : cases) {
      check_low_precision<float>(of, device);
      check_low_precision<bf16>(of, device);
    }
  });
}
