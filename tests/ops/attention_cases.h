// What the tests of attention share: cases, and an attention run forward and backward.
#pragma once
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
    if (!(std::abs(x[i] - y[i]) <= largest))
      largest = std::isnan(x[i] - y[i]) ? std::numeric_limits<double>::infinity() : std::abs(x[i] - y[i]);
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
  Tensor qkv() const { return draw({b, c, 3 * heads * width}, 1); }
  Tensor dy() const { return draw({b, c, heads * width}, 2); }
};

}  // namespace ricci
