#include "ops/rows/softmax.h"

#include "tests/ops/values.h"

using namespace ricci;

namespace {

Values naive_softmax(const Values& x, size_t n) {
  Values p(x.size());
  for (size_t first = 0; first < x.size(); first += n) {
    double most = -HUGE_VAL, sum = 0;
    for (size_t c = first; c < first + n; ++c) most = std::max(most, x[c]);
    for (size_t c = first; c < first + n; ++c) sum += std::exp(x[c] - most);
    for (size_t c = first; c < first + n; ++c) p[c] = std::exp(x[c] - most) / sum;
  }
  return p;
}

Values naive_gradient(const Values& dp, const Values& p, size_t n) {
  Values dx(p.size());
  for (size_t first = 0; first < p.size(); first += n) {
    double mean = 0;
    for (size_t c = first; c < first + n; ++c) mean += dp[c] * p[c];
    for (size_t c = first; c < first + n; ++c) dx[c] = p[c] * (dp[c] - mean);
  }
  return dx;
}

}  // namespace

TEST_CASE("softmax: odd sizes, one element, wider than a block") {
  for (Shape shape : {Shape{3, 5, 7}, Shape{4, 1}, Shape{1, 301}, Shape{13}, Shape{2, 1030}, Shape{3, 8}, Shape{2, 2056}}) {
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor x = drawn(shape, dtype, device, 3), dp = drawn(shape, dtype, device, 4);
      const auto n = static_cast<size_t>(shape[-1]);
      const Values expected = naive_softmax(values_of(x), n);
      const Tensor p = softmax(x);
      // Each exponential is off by a few units, their sum by one per term.
      CHECK(error_of(p, expected) <= 2 * unit(dtype) + (8 + static_cast<double>(n)) * sum_unit(dtype));
      const Tensor dx = gradients_of([](const std::vector<Tensor>& in) { return softmax(in[0]); }, {x}, dp)[0];
      const Values from_p = naive_gradient(values_of(dp), values_of(p), n);
      if (n > 1) CHECK(error_of(dx, from_p) <= 2 * unit(dtype) + (8 + static_cast<double>(n)) * sum_unit(dtype));
    });
  }
}

TEST_CASE("softmax: large numbers do not overflow, minus infinity gets nothing") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Values p = values_of(softmax(tensor_of({30000, 30000, -HUGE_VAL, -30000}, {4}, dtype, device)));
    CHECK(p[0] == 0.5);
    CHECK(p[1] == 0.5);
    CHECK(p[2] == 0);
    CHECK(p[3] == 0);
  });
}

TEST_CASE("softmax: no rows, no columns, no index") {
  CHECK(softmax(Tensor({0, 3})).size() == 0);
  CHECK(softmax(Tensor({3, 0})).size() == 0);
  CHECK(message_of([] { softmax(Tensor(Shape{})); }) == "softmax: expected at least one index, got []");
}
