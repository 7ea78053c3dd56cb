// Softmax, its cross-entropy, sums and means over an index, against their definitions in f64.
#include "ops/products/products.h"
#include "ops/rows/cross_entropy.h"
#include "ops/rows/reduce.h"
#include "ops/rows/softmax.h"
#include "ops/shapes/shape_ops.h"
#include "tests/ops/values.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

Values naive_softmax(const Values& x, size_t n) {
  Values p(x.size());
  for (size_t first = 0; first < x.size(); first += n) {
    double largest = -HUGE_VAL, sum = 0;
    for (size_t c = first; c < first + n; ++c) largest = std::max(largest, x[c]);
    for (size_t c = first; c < first + n; ++c) sum += std::exp(x[c] - largest);
    for (size_t c = first; c < first + n; ++c) p[c] = std::exp(x[c] - largest) / sum;
  }
  return p;
}

Values naive_gradient(const Values& dp, const Values& p, size_t n) {
  Values dx(p.size());
  for (size_t first = 0; first < p.size(); first += n) {
    double dot = 0;
    for (size_t c = first; c < first + n; ++c) dot += dp[c] * p[c];
    for (size_t c = first; c < first + n; ++c) dx[c] = p[c] * (dp[c] - dot);
  }
  return dx;
}

struct Naive {
  Values sum, size;               // sums of the terms and of their absolute values
  std::vector<size_t> summed_in;  // the sum of each element
};

Naive naive_sum(const Values& x, const Shape& shape, int index) {
  int64_t inner = 1, outputs = 1;
  for (int d = index + 1; d < shape.rank(); ++d) inner *= shape[d];
  for (int d = 0; d < shape.rank(); ++d) outputs *= d == index ? 1 : shape[d];
  const int64_t middle = shape[index];
  Naive naive{Values(static_cast<size_t>(outputs)), Values(static_cast<size_t>(outputs)), {}};
  for (int64_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<size_t>(i / (inner * middle) * inner + i % inner);
    naive.summed_in.push_back(at);
    naive.sum[at] += x[static_cast<size_t>(i)];
    naive.size[at] += std::abs(x[static_cast<size_t>(i)]);
  }
  return naive;
}

}  // namespace

TEST_CASE("softmax: odd sizes, one element, wider than a block") {
  for (Shape shape : {Shape{3, 5, 7}, Shape{4, 1}, Shape{1, 301}, Shape{13}, Shape{2, 1030}, Shape{3, 8}, Shape{2, 2056}}) {
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor x = drawn(shape, dtype, device, 3), dp = drawn(shape, dtype, device, 4);
      const auto n = static_cast<size_t>(shape[-1]);
      const Values expected = naive_softmax(values_of(x), n);
      const Tensor p = softmax(x);
      // The error of each exponential is a few units, that of their sum one per term.
      CHECK(error_of(p, expected) <= 2 * unit(dtype) + (8 + static_cast<double>(n)) * sum_unit(dtype));
      const Tensor dx = gradients_of([](const std::vector<Tensor>& in) { return softmax(in[0]); }, {x}, dp)[0];
      const Values from_p = naive_gradient(values_of(dp), values_of(p), n);
      if (n > 1) CHECK(error_of(dx, from_p) <= 2 * unit(dtype) + (8 + static_cast<double>(n)) * sum_unit(dtype));
    });
  }
}

TEST_CASE("softmax: large numbers do not overflow, minus infinity gets nothing; an index is needed") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Values p = values_of(softmax(tensor_of({30000, 30000, -HUGE_VAL, -30000}, {4}, dtype, device)));
    CHECK(p == Values{0.5, 0.5, 0, 0});
  });
  CHECK(message_of([] { softmax(Tensor(Shape{})); }) == "softmax: expected at least one index, got []");
}

TEST_CASE("cross-entropy: its definition, on every device and dtype, with rows that do not count") {
  for (int64_t v : {1, 7, 301})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor logits = drawn({5, v}, dtype, device, 3);
      const std::vector<int64_t> targets{0, -1, v - 1, v / 2, -1};
      const Values l = values_of(logits);
      double sum = 0, size = 1;
      Values dl(l.size());
      const Values p = naive_softmax(l, static_cast<size_t>(v));
      for (size_t i = 0; i < l.size(); ++i) {
        const int64_t target = targets[i / static_cast<size_t>(v)];
        const bool is_target = static_cast<int64_t>(i) % v == target;
        if (is_target) sum -= std::log(p[i]), size += std::abs(std::log(p[i])) + 2 * std::abs(l[i]);
        if (target >= 0) dl[i] = 0.5 * (p[i] - is_target) / 3;
      }
      const Tensor target_r = ids_of(targets, {5}, device);
      const double bound = (16 + static_cast<double>(v)) * sum_unit(dtype);
      CHECK(std::abs(item(cross_entropy(logits, target_r)) - sum / 3) <= bound * size);
      const Tensor dloss = tensor_of({0.5}, {}, Dtype::f64, device);
      const Tensor got = gradients_of([&](const std::vector<Tensor>& in) { return cross_entropy(in[0], target_r); }, {logits}, dloss)[0];
      CHECK(error_of(got, dl) <= unit(dtype) + bound);
    });
}

TEST_CASE("cross-entropy: the gradient of a row of large logits adds up to 0, and that of a row that does not count is 0") {
  on_every_device([](Device device) {
    const auto gradient = [&](const Values& logits, int64_t target) {
      const Tensor l_rv = tensor_of(logits, {1, static_cast<int64_t>(logits.size())}, Dtype::f32, device),
                   target_r = ids_of({target}, {1}, device);
      const Tensor dloss = tensor_of({1}, {}, Dtype::f64, device);
      return values_of(gradients_of([&](const std::vector<Tensor>& in) { return cross_entropy(in[0], target_r); }, {l_rv}, dloss)[0]);
    };
    const Values dl = gradient({1e4, 1e4 - 1, 1e4 - 2, 0}, 1);
    CHECK(std::abs(dl[0] + dl[1] + dl[2] + dl[3]) <= 4 * unit(Dtype::f32));
    for (double odd : {double{NAN}, HUGE_VAL, -HUGE_VAL}) CHECK(gradient({odd, 1, 2}, -1) == Values{0, 0, 0});
  });
}

TEST_CASE("cross-entropy: the loss of equal huge logits is the logarithm of their number") {
  on_every_device([](Device device) {
    const Tensor logits = tensor_of({3e38, -3e38, 3e38}, {1, 3}, Dtype::f32, device), target = ids_of({0}, {1}, device);
    CHECK(std::abs(item(cross_entropy(logits, target)) - std::log(2.0)) <= unit(Dtype::f32));
    // With x = 1 the weights are the logits.
    const Tensor x = tensor_of({1}, {1, 1}, Dtype::f32, device);
    CHECK(std::abs(item(classifier_loss(x, logits.reshaped({3, 1}), Tensor(), target)) - std::log(2.0)) <= unit(Dtype::f32));
  });
}

TEST_CASE("cross-entropy: no row that counts is 0, and large logits do not overflow") {
  on_every_device([](Device device) {
    CHECK(item(cross_entropy(drawn({2, 3}, Dtype::f32, device, 1), ids_of({-1, -1}, {2}, device))) == 0);
    CHECK(item(cross_entropy(tensor_of({1000, 0, -1000}, {1, 3}, Dtype::f32, device), ids_of({0}, {1}, device))) == 0);
    if (device != Device::cpu) CHECK(std::isnan(item(cross_entropy(drawn({1, 3}, Dtype::f32, device, 1), ids_of({-2}, {1}, device)))));
  });
  CHECK(message_of([] {
    cross_entropy(drawn({2, 3}, Dtype::f32, Device::cpu, 1), ids_of({0, -2}, {2}, Device::cpu));
  }) == "cross_entropy: target -2 at row 1 is outside the 3 classes");
  CHECK(message_of([] {
    cross_entropy(drawn({2, 3}, Dtype::f32, Device::cpu, 1), ids_of({0}, {1}, Device::cpu));
  }) == "cross_entropy: index r is 2 in logits_rv[2 3] but 1 in targets_r[1]");
}

TEST_CASE("sum and mean over all elements") {
  for (Shape shape : {Shape{}, Shape{1}, Shape{3, 5, 7}, Shape{4096}, Shape{4097}, Shape{3, 5001}}) {
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor x = drawn(shape, dtype, device, 1);
      const double n = static_cast<double>(shape.size());
      double total = 0, size = 0;
      for (double v : values_of(x)) total += v, size += std::abs(v);
      CHECK(sum(x).shape() == Shape({}));
      CHECK(error_of(sum(x), {total}, {size}) <= unit(dtype) + n * 0x1p-53);
      CHECK(error_of(mean(x), {total / n}, {size / n}) <= unit(dtype) + n * 0x1p-53);
      const Tensor dy = tensor_of({-3}, {}, dtype, device);
      const Values once(static_cast<size_t>(shape.size()), -3), averaged(static_cast<size_t>(shape.size()), -3 / n);
      CHECK(error_of(gradients_of([](const std::vector<Tensor>& in) { return sum(in[0]); }, {x}, dy)[0], once) == 0);
      CHECK(error_of(gradients_of([](const std::vector<Tensor>& in) { return mean(in[0]); }, {x}, dy)[0], averaged) <= 2 * unit(dtype));
    });
  }
}

TEST_CASE("sum and mean over one index: outermost, in the middle, innermost, of one element") {
  for (Shape shape : {Shape{1}, Shape{7}, Shape{3, 5, 7}, Shape{37, 2, 9}, Shape{2, 70, 35}, Shape{1, 4, 1}, Shape{11, 3, 70},
           Shape{9, 4099, 2}, Shape{3, 0, 2}, Shape{0, 3}}) {
    for (int index = 0; index < shape.rank(); ++index) {
      on_every_device_and_dtype([&](Device device, Dtype dtype) {
        const Tensor x = drawn(shape, dtype, device, 2);
        Naive naive = naive_sum(values_of(x), shape, index);
        Shape without;
        for (int d = 0; d < shape.rank(); ++d)
          if (d != index) without.push_back(shape[d]);
        const double n = static_cast<double>(shape[index]), bound = 2 * unit(dtype) + n * sum_unit(dtype);
        const Tensor y = sum(x, index);
        CHECK(y.shape() == without);
        CHECK(same_bits(y, sum(x, index - shape.rank())));
        CHECK(error_of(y, naive.sum, naive.size) <= bound);
        const Tensor dy = drawn(without, dtype, device, 3);
        Values dx, dyv = values_of(dy);
        for (size_t at : naive.summed_in) dx.push_back(dyv[at]);
        CHECK(error_of(gradients_of([&](const std::vector<Tensor>& in) { return sum(in[0], index); }, {x}, dy)[0], dx) == 0);
        if (shape[index] == 0) return;
        for (double& v : naive.sum) v /= n;
        for (double& v : naive.size) v /= n;
        CHECK(error_of(mean(x, index), naive.sum, naive.size) <= bound);
        for (double& v : dx) v /= n;
        CHECK(error_of(gradients_of([&](const std::vector<Tensor>& in) { return mean(in[0], index); }, {x}, dy)[0], dx) <= 2 * unit(dtype));
      });
    }
  }
}

TEST_CASE("sum: the error of a million terms in f32 stays near one rounding") {
  constexpr int64_t n = 1 << 20;
  const Tensor drawn_f64({2 * n}, Dtype::f64);
  fill_uniform(drawn_f64.data<double>(), 2 * n, 0.0, 1.0, Philox{5, 1});
  const Tensor x = convert(drawn_f64, Dtype::f32), many = concatenate({x, x, x, x, x, x, x, x, x}, 0);
  on_every_device([&](Device device) {
    if (device == Device::cuda_emulated && !test::everything()) return;
    for (const auto& [shape, index] : {std::pair<Shape, int>{{2, n}, 1}, {{n, 2}, 0}, {{1, n, 2}, 1}, {{9, n, 2}, 1}}) {
      const Tensor terms = (shape[0] == 9 ? many : x).reshaped(shape);
      CHECK(error_of(sum(to(terms, device), index), values_of(sum(convert(terms, Dtype::f64), index))) <= 4e-7);
    }
  });
}

TEST_CASE("sum and mean: the same bits for any number of threads") {
  const Tensor x = drawn({17, 300, 41}, Dtype::f32, Device::cpu, 4);
  check_threads([&] { return std::vector<Tensor>{sum(x), mean(x), sum(x, 0), sum(x, 1), sum(x, 2), mean(x.reshaped({300, 17, 41}), 1)}; });
}

TEST_CASE("sum and mean: messages and nothing to add") {
  CHECK(values_of(sum(Tensor({0, 3})))[0] == 0);
  CHECK(error_of(sum(Tensor({0, 3}), 0), {0, 0, 0}) == 0);
  CHECK(sum(Tensor({9, 3, 0}), 1).shape() == Shape({9, 0}));
  CHECK(message_of([] { sum(Tensor({2, 3}), 2); }) == "sum: index 2 does not exist in [2 3]");
  CHECK(message_of([] { mean(Tensor({2, 3}), -3); }) == "mean: index -3 does not exist in [2 3]");
  CHECK(message_of([] { mean(Tensor({0, 3})); }) == "mean: [0 3] has no elements");
  CHECK(message_of([] { mean(Tensor({3, 0}), 1); }) == "mean: [3 0] has no elements");
}
