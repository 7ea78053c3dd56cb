// What the tests of attention share: cases, and an attention run forward and backward.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/random.h"
#include "ops/attention/attention.h"
#include "tests/ops/values.h"

namespace ricci {

inline Tensor draw(const Shape& shape, uint64_t stream) { return drawn(shape, Dtype::f64, Device::cpu, stream); }

// The largest difference of two tensors; a NaN counts as infinite.
inline double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const Values x = values_of(a), y = values_of(b);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i)
    raise_to(largest, std::abs(x[i] - y[i]));
  return largest;
}

using Attention = Tensor (*)(const Arg&, const AttentionOptions&);

struct ForwardAndBackward {
  Tensor y, dqkv;
};
inline ForwardAndBackward run(Attention f, const Tensor& qkv, const Tensor& dy, const AttentionOptions& options) {
  const Parameter x{qkv, {}, "qkv"};
  set_random_state({5, 1});  // the same weights are dropped in every run
  Tape tape;
  const Tensor y = f(x, options);
  tape.backward(y, dy);
  return {y.detached(), x.grad};
}

struct Case {
  int64_t b, c, heads, width;
  bool causal;
  int64_t window;
  double dropout = 0;
  std::vector<int64_t> lengths{};  // of the b sequences; empty: no padding
  AttentionOptions options(Device device = Device::cpu) const {
    return {heads, causal, window, dropout, lengths.empty() ? Tensor() : ids_of(lengths, {b}, device)};
  }
  std::string text() const {
    std::string all = "b " + std::to_string(b) + ", c " + std::to_string(c) + ", heads " + std::to_string(heads) + ", width " +
                      std::to_string(width) + (causal ? ", causal" : "") + ", window " + std::to_string(window) + ", dropout " +
                      std::to_string(dropout);
    for (int64_t length : lengths) all += ", length " + std::to_string(length);
    return all;
  }
  Tensor qkv() const { return draw({b, c, 3 * heads * width}, 1); }
  Tensor dy() const { return draw({b, c, heads * width}, 2); }
};

// attention of the case where all keys and values beyond the lengths are `padding`.
inline ForwardAndBackward run_padded(const Case& of, Dtype dtype, Device device, double padding) {
  const Tensor qkv = of.qkv();
  const int64_t d = of.heads * of.width;
  for (int64_t b = 0; b < of.b; ++b)
    for (int64_t s = of.lengths[static_cast<size_t>(b)]; s < of.c; ++s)
      std::fill_n(qkv.data<double>() + (b * of.c + s) * 3 * d + d, 2 * d, padding);
  return run(attention, to(convert(qkv, dtype), device), to(convert(of.dy(), dtype), device), of.options(device));
}

// Of a padded case that is not causal: what padding holds reaches nothing, a query that sees no key gives zero and passes no
// gradient, and a key that nobody sees has none.
inline void check_padding(const Case& of, Dtype dtype, Device device) {
  const ForwardAndBackward got = run_padded(of, dtype, device, std::numeric_limits<double>::quiet_NaN()),
                           other = run_padded(of, dtype, device, 1);
  CHECK(same_bits(got.y, other.y));
  CHECK(same_bits(got.dqkv, other.dqkv));
  const Values y = values_of(got.y), dqkv = values_of(got.dqkv);
  const size_t d = static_cast<size_t>(of.heads * of.width);
  for (int64_t b = 0; b < of.b; ++b)
    for (int64_t t = 0; t < of.c; ++t) {
      const int64_t length = of.lengths[static_cast<size_t>(b)];
      const bool blind = std::max<int64_t>(t - of.window + 1, 0) >= length, unseen = t >= length;
      const size_t row = static_cast<size_t>(b * of.c + t);
      for (size_t x = 0; x < d; ++x) {
        CHECK((y[row * d + x] == 0) == blind);
        if (blind) CHECK(dqkv[row * 3 * d + x] == 0);
        if (unseen) CHECK(dqkv[(row * 3 + 1) * d + x] == 0);
        CHECK((dqkv[(row * 3 + 2) * d + x] == 0) == unseen);
      }
    }
}

}  // namespace ricci
