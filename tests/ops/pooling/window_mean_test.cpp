#include "ops/pooling/window_mean.h"

#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Case {
  Shape shape;
  MeanWindow window;
  std::vector<int64_t> lengths;
};

// The sets of positions spelled out, and the sums of the absolute terms for the bounds.
struct Expected {
  Values y, size;
};
Expected naive(const Values& x, const Case& of) {
  const int64_t b = of.shape[0], c = of.shape[1], d = of.shape[2], half = of.window.window / 2;
  Expected out{Values(x.size()), Values(x.size())};
  for (int64_t i = 0; i < b; ++i)
    for (int64_t t = 0; t < c; ++t)
      for (int64_t k = 0; k < d; ++k) {
        const auto at = [&](int64_t s) { return x[static_cast<size_t>((i * c + s) * d + k)]; };
        double sum = 0, size = 0;
        int64_t n = 0;
        for (int64_t s = 0; s < (of.lengths.empty() ? c : of.lengths[static_cast<size_t>(i)]); ++s) {
          const bool seen = of.window.causal ? s <= t && t - s < of.window.window : std::abs(t - s) <= half;
          if (seen) sum += at(s), size += std::abs(at(s)), ++n;
        }
        const double share = n ? 1.0 / static_cast<double>(n) : 0;
        out.y[static_cast<size_t>((i * c + t) * d + k)] = sum * share - at(t);
        out.size[static_cast<size_t>((i * c + t) * d + k)] = size * share + std::abs(at(t));
      }
  return out;
}

Tensor lengths_on(const Case& of, Device device) {
  return of.lengths.empty() ? Tensor() : ids_of(of.lengths, {static_cast<int64_t>(of.lengths.size())}, device);
}

}  // namespace

TEST_CASE("window mean: the mean over the positions of the window minus the position, on every device and dtype") {
  for (const Case& of : std::vector<Case>{{{2, 7, 5}, {3, true}, {}}, {{2, 7, 5}, {3, false}, {}}, {{1, 40, 300}, {17, true}, {}},
           {{1, 5, 3}, {9, false}, {}}, {{4, 6, 3}, {3, false}, {6, 3, 0, 1}}, {{3, 6, 3}, {4, true}, {6, 2, 0}},
           {{2, 1, 4}, {1, true}, {}}})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor x = drawn(of.shape, dtype, device, 3);
      const Expected expected = naive(values_of(x), of);
      const Tensor y = window_mean_difference(x, of.window, lengths_on(of, device));
      CHECK(error_of(y, expected.y, expected.size) <= unit(dtype) + (2 + static_cast<double>(of.window.window)) * sum_unit(dtype));
    });
}

TEST_CASE("window mean: over whole sequences") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Tensor x = drawn({3, 5, 4}, dtype, device, 1), y = mean_over_positions(x, ids_of({5, 2, 0}, {3}, device));
    const Values v = values_of(x);
    Values expected(12), size(12, 1);
    for (size_t b = 0; b < 3; ++b)
      for (size_t t = 0; t < std::vector<size_t>{5, 2, 0}[b]; ++t)
        for (size_t k = 0; k < 4; ++k) expected[b * 4 + k] += v[(b * 5 + t) * 4 + k] / static_cast<double>(std::vector<size_t>{5, 2, 1}[b]);
    CHECK(error_of(y, expected, size) <= 3 * unit(dtype) + 20 * sum_unit(dtype));
    for (size_t k = 8; k < 12; ++k) CHECK(values_of(y)[k] == 0);
  });
}

TEST_CASE("window mean: a window of the largest number is the whole sequence") {
  on_every_device([](Device device) {
    const Tensor x = drawn({2, 6, 3}, Dtype::f32, device, 1), dy = drawn({2, 6, 3}, Dtype::f32, device, 2);
    for (bool causal : {true, false}) {
      const auto gradient = [&](int64_t window) {
        return gradients_of([&](const auto& in) { return window_mean_difference(in[0], {window, causal}); }, {x}, dy)[0];
      };
      CHECK(same_bits(window_mean_difference(x, {INT64_MAX, causal}), window_mean_difference(x, {13, causal})));
      CHECK(same_bits(gradient(INT64_MAX), gradient(13)));
    }
  });
}

TEST_CASE("window mean: messages") {
  const Tensor x({2, 4, 3});
  const auto window = [&](const MeanWindow& window, const Tensor& lengths_b = {}) {
    return message_of([&] { window_mean_difference(x, window, lengths_b); });
  };
  const auto mean = [&](const std::vector<int64_t>& lengths) {
    return message_of([&] { mean_over_positions(x, ids_of(lengths, {static_cast<int64_t>(lengths.size())}, Device::cpu)); });
  };
  CHECK(window({0, true}) == "window_mean_difference: the window is 0, expected 1 or more");
  CHECK(window({2, false}) == "window_mean_difference: the window is 2 and not causal, expected an odd number");
  CHECK(window({3, true}, ids_of({4, 5}, {2}, Device::cpu)) == "window_mean_difference: length 5 at [1] of lengths_b is outside 0 .. 4");
  CHECK(mean({4}) == "mean_over_positions: index b is 2 in x_bcd[2 4 3] but 1 in lengths_b[1]");
  CHECK(mean({-1, 4}) == "mean_over_positions: length -1 at [0] of lengths_b is outside 0 .. 4");
}
