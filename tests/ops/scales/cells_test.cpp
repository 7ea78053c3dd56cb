// Cells of a coarser scale against the formulas spelled out: mean, maximum, windows of a convolution.
#include "ops/scales/cells.h"

#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Extents {
  int64_t b, c, d;
};

double at(const Values& x, const Extents& of, int64_t b, int64_t t, int64_t i) {
  return t < 0 ? 0 : x[static_cast<size_t>((b * of.c + t) * of.d + i)];
}

// f(values of a column of a cell) for every cell and column.
Values naive_cells(const Values& x, const Extents& of, int64_t size, const std::function<double(const Values&)>& f) {
  Values y;
  for (int64_t b = 0; b < of.b; ++b)
    for (int64_t j = 0; j < of.c / size; ++j)
      for (int64_t i = 0; i < of.d; ++i) {
        Values column;
        for (int64_t q = 0; q < size; ++q) column.push_back(at(x, of, b, j * size + q, i));
        y.push_back(f(column));
      }
  return y;
}

double mean(const Values& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

const std::vector<std::pair<Extents, int64_t>> kCases = {
    {{2, 11, 5}, 4}, {{3, 8, 300}, 2}, {{1, 3, 4}, 1}, {{2, 3, 4}, 5}, {{1, 70, 33}, 64}, {{2, 11, 264}, 4}};

}  // namespace

TEST_CASE("cell_mean and cell_max: the formula, on every device and dtype, also where there is no cell") {
  for (const auto& [of, size] : kCases)
    on_every_device_and_dtype([&, of = of, size = size](Device device, Dtype dtype) {
      const Tensor x = drawn({of.b, of.c, of.d}, dtype, device, 3);
      const Values v = values_of(x);
      const Tensor y = cell_mean(x, size), most = cell_max(x, size);
      CHECK(y.shape() == Shape{of.b, of.c / size, of.d});
      CHECK(error_of(y, naive_cells(v, of, size, mean)) <= unit(dtype) + static_cast<double>(size + 2) * sum_unit(dtype));
      CHECK(values_of(most) == naive_cells(v, of, size, [](const Values& c) { return *std::max_element(c.begin(), c.end()); }));
    });
}

TEST_CASE("cell_max: the gradient goes to the first of equal elements, a NaN is kept") {
  on_every_device([](Device device) {
    const Tensor x = tensor_of({1, 5, 3, 5, 5, 2, -1, -1, 9}, {1, 9, 1}, Dtype::f32, device),
                 dy = tensor_of({10, 20}, {1, 2, 1}, Dtype::f32, device);
    const auto dx = gradients_of([](const std::vector<Tensor>& in) { return cell_max(in[0], 4); }, {x}, dy);
    CHECK(values_of(dx[0]) == Values{0, 10, 0, 0, 20, 0, 0, 0, 0});
    const Values y = values_of(cell_max(tensor_of({1, NAN, 3, 5, NAN, 2}, {1, 6, 1}, Dtype::f64, device), 3));
    CHECK((std::isnan(y[0]) && std::isnan(y[1])));
  });
}

TEST_CASE("cell_windows: windows that end with their cells, zero before the sequence") {
  struct Case {
    Extents of;
    int64_t size, kernel, history;
  };
  for (const Case& c : std::vector<Case>{{{2, 11, 3}, 4, 4, 0}, {{2, 11, 3}, 4, 12, 0}, {{1, 9, 40}, 3, 5, 0}, {{2, 10, 2}, 2, 6, 4},
           {{1, 10, 2}, 3, 9, 2}, {{1, 2, 3}, 4, 8, 0}, {{2, 11, 16}, 4, 4, 0}, {{3, 7, 24}, 2, 2, 0}, {{1, 17, 8}, 8, 8, 0},
           {{2, 9, 264}, 2, 4, 0}, {{2, 9, 24}, 3, 8, 5}})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor x = drawn({c.of.b, c.of.c, c.of.d}, dtype, device, 4), y = cell_windows(x, c.size, c.kernel, c.history);
      const int64_t cells = (c.of.c - c.history) / c.size;
      const Values v = values_of(x);
      Values expected;
      for (int64_t b = 0; b < c.of.b; ++b)
        for (int64_t j = 0; j < cells; ++j)
          for (int64_t i = 0; i < c.of.d; ++i)
            for (int64_t q = 0; q < c.kernel; ++q) expected.push_back(at(v, c.of, b, c.history + (j + 1) * c.size - c.kernel + q, i));
      CHECK(y.shape() == Shape{c.of.b, cells, c.of.d * c.kernel});
      CHECK(values_of(y) == expected);
    });
}

TEST_CASE("cells: gradients have the bits of the CPU, 16 bytes at a time or not, also after the last cell") {
  for (int64_t size : {1, 2, 3, 4, 8})
    for (int64_t d : {24, 264, 5})
      on_every_device_and_dtype([&](Device device, Dtype dtype) {
        CAPTURE(size);
        CAPTURE(d);
        const std::vector<std::function<Tensor(const Tensor&)>> ops = {[&](const Tensor& x) { return cell_max(x, size); },
            [&](const Tensor& x) { return cell_windows(x, size, size); },
            [&](const Tensor& x) { return cell_windows(x, size, 2 * size, size); }};
        for (const auto& op : ops) {
          const auto gradient = [&](Device on) {
            const Tensor x = drawn({2, 2 * size + 1, d}, dtype, on, 1);
            return gradients_of([&](const std::vector<Tensor>& in) { return op(in[0]); }, {x}, drawn(op(x).shape(), dtype, on, 4))[0];
          };
          CHECK(same_bits(gradient(device), gradient(Device::cpu)));
        }
      });
}

TEST_CASE("cell_windows and linear are a causal strided convolution") {
  const Extents of{2, 9, 3};
  const int64_t size = 2, kernel = 4, out = 5;
  const Tensor x = drawn({of.b, of.c, of.d}, Dtype::f64, Device::cpu, 1), w = drawn({out, of.d, kernel}, Dtype::f64, Device::cpu, 2);
  const Tensor bias = drawn({out}, Dtype::f64, Device::cpu, 3),
               y = linear(cell_windows(x, size, kernel), w.reshaped({out, of.d * kernel}), bias);
  const Values v = values_of(x), weights = values_of(w);
  Values expected;
  for (int64_t b = 0; b < of.b; ++b)
    for (int64_t j = 0; j < of.c / size; ++j)
      for (int64_t f = 0; f < out; ++f) {
        double sum = values_of(bias)[static_cast<size_t>(f)];
        for (int64_t i = 0; i < of.d; ++i)
          for (int64_t q = 0; q < kernel; ++q)
            sum += weights[static_cast<size_t>((f * of.d + i) * kernel + q)] * at(v, of, b, (j + 1) * size - kernel + q, i);
        expected.push_back(sum);
      }
  CHECK(error_of(y, expected) < 1e-14);
}

TEST_CASE("whole_cells: lengths in cells, rounded down") {
  on_every_device([](Device device) { CHECK(values_of(whole_cells(ids_of({9, 8, 3, 0}, {4}, device), 4)) == Values{2, 2, 0, 0}); });
}

TEST_CASE("text_lengths: up to the token that the last target is") {
  on_every_device([](Device device) {
    const Tensor targets = ids_of({1, 2, 3, 1, 2, -1, 1, -1, -1, -1, 0, -1, -1, -1, -1, -1, -1, 4}, {6, 3}, device);
    CHECK(values_of(text_lengths(targets)) == Values{3, 3, 2, 3, 0, 3});
  });
}

TEST_CASE("cells: messages") {
  const Tensor x({2, 7, 3});
  CHECK(message_of([&] { cell_mean(x, 0); }) == "cell_mean: cells of 0 positions, expected 1 or more");
  CHECK(message_of([&] { cell_max(x, -2); }) == "cell_max: cells of -2 positions, expected 1 or more");
  CHECK(message_of([&] { cell_windows(x, 0, 3); }) == "cell_windows: cells of 0 positions, expected 1 or more");
  CHECK(message_of([&] { cell_windows(x, 3, 2); }) == "cell_windows: a kernel of 2 positions, expected at least the 3 of a cell");
  CHECK(message_of([&] { cell_windows(x, 3, 6, 4); }) ==
        "cell_windows: 4 positions of history, expected 0 .. kernel - size = 3 and not more than there are, 7");
  CHECK(message_of([&] { cell_windows(x, 3, 30, 8); }) ==
        "cell_windows: 8 positions of history, expected 0 .. kernel - size = 27 and not more than there are, 7");
  CHECK(message_of([&] { whole_cells(ids_of({4}, {1}, Device::cpu), 0); }) == "whole_cells: cells of 0 positions, expected 1 or more");
  CHECK(message_of([&] { text_lengths(x); }) == "text_lengths: targets_bc[2 7 3] is f32, expected i64");
  CHECK(message_of([&] { whole_cells(x, 2); }) == "whole_cells: lengths_b[2 7 3] is f32, expected i64");
}
