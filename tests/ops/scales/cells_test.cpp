// The ops of coarser scales against their formulas, spelled out.
#include "ops/scales/cells.h"

#include "ops/products/products.h"
#include "ops/shapes/shape_ops.h"
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

struct Bag {
  int64_t b, c, v, size;
  std::vector<int64_t> lengths;
};

std::vector<int64_t> some_ids(const Bag& of) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < of.b * of.c; ++i) ids.push_back((i * 7 + i / 3) % of.v);
  return ids;
}

double naive_bag(const Values& l, const std::vector<int64_t>& ids, const Bag& of) {
  double total = 0, counted = 0;
  for (int64_t b = 0; b < of.b; ++b)
    for (int64_t j = 0; j < of.c / of.size; ++j) {
      if ((j + 2) * of.size > (of.lengths.empty() ? of.c : of.lengths[static_cast<size_t>(b)])) continue;
      const double* const row = l.data() + (b * (of.c / of.size) + j) * of.v;
      double sum = 0;
      for (int64_t v = 0; v < of.v; ++v) sum += std::exp(row[v]);
      for (int64_t w = 0; w < of.size; ++w)
        total -= (row[ids[static_cast<size_t>(b * of.c + (j + 1) * of.size + w)]] - std::log(sum)) / static_cast<double>(of.size);
      ++counted;
    }
  return counted > 0 ? total / counted : 0;
}

struct Join {
  int64_t b, c, d, cells, ratio, shift;
};

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
  for (const auto& [size, d] : {std::pair<int64_t, int64_t>{1, 24}, {2, 264}, {3, 5}, {3, 24}, {4, 24}, {8, 264}, {8, 5}})
    on_every_device_and_dtype([&, size = size, d = d](Device device, Dtype dtype) {
      INFO("size ", size, ", d ", d);
      const auto check = [&, size = size](const std::function<Tensor(const std::vector<Tensor>&)>& op, const std::vector<Shape>& shapes) {
        const auto gradients = [&](Device on) {
          std::vector<Tensor> in;
          for (const Shape& shape : shapes) in.push_back(drawn(shape, dtype, on, in.size()));
          return gradients_of(op, in, drawn(op(in).shape(), dtype, on, 4));
        };
        const auto got = gradients(device), expected = gradients(Device::cpu);
        for (size_t i = 0; i < 2 && i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));  // the sum for the bias has other bits
      };
      const Shape x{2, 2 * size + 1, d};
      check([&](const auto& in) { return cell_max(in[0], size); }, {x});
      check([&](const auto& in) { return cell_windows(in[0], size, size); }, {x});
      check([&](const auto& in) { return cell_windows(in[0], size, 2 * size, size); }, {x});
      check([&](const auto& in) { return join_upsampled(in[0], in[1], in[2], -1); }, {{2, 11, d}, {2, 3, d * size}, {d}});
    });
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

TEST_CASE("join_upsampled: with contract a shifted transposed convolution next to a, on every device and dtype") {
  for (const Join& of : std::vector<Join>{{2, 11, 3, 2, 4, 3}, {2, 10, 3, 4, 2, 2}, {1, 5, 40, 3, 3, -2}, {2, 4, 5, 4, 1, 0},
           {1, 3, 2, 1, 4, 3}, {2, 9, 264, 2, 4, 1}, {1, 7, 16, 3, 2, -1}, {2, 11, 24, 1, 8, 2}})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor a = drawn({of.b, of.c, of.d}, dtype, device, 1), h = drawn({of.b, of.cells, of.d}, dtype, device, 2);
      const Tensor w = drawn({of.d, of.d, of.ratio}, dtype, device, 3), bias = drawn({of.d}, dtype, device, 4);
      const Tensor z = contract("bmi,ix->bmx", h, w.reshaped({of.d, of.d * of.ratio}));
      const Values av = values_of(a), hv = values_of(h), wv = values_of(w), bv = values_of(bias);
      Values expected, size;
      for (int64_t r = 0; r < of.b * of.c; ++r) {
        for (int64_t i = 0; i < of.d; ++i)
          expected.push_back(av[static_cast<size_t>(r * of.d + i)]), size.push_back(std::abs(expected.back()));
        const int64_t from = r % of.c - of.shift, cell = r / of.c * of.cells + from / of.ratio;
        const bool covered = from >= 0 && from < of.cells * of.ratio;
        for (int64_t o = 0; o < of.d; ++o) {
          expected.push_back(covered ? bv[static_cast<size_t>(o)] : 0), size.push_back(std::abs(expected.back()));
          for (int64_t i = 0; i < of.d && covered; ++i) {
            const double term =
                hv[static_cast<size_t>(cell * of.d + i)] * wv[static_cast<size_t>((i * of.d + o) * of.ratio + from % of.ratio)];
            expected.back() += term, size.back() += std::abs(term);
          }
        }
      }
      const Tensor y = join_upsampled(a, z, bias, of.shift);
      CHECK(y.shape() == Shape{of.b, of.c, 2 * of.d});
      CHECK(error_of(y, expected, size) <= 3 * unit(dtype) + static_cast<double>(of.d + 2) * sum_unit(dtype));
    });
}

TEST_CASE("join_upsampled: a shift of the largest numbers reads no cell") {
  on_every_device([](Device device) {
    const Tensor a = drawn({2, 5, 3}, Dtype::f32, device, 1), z = drawn({2, 2, 6}, Dtype::f32, device, 2),
                 bias = drawn({3}, Dtype::f32, device, 3);
    const Tensor dy = drawn({2, 5, 6}, Dtype::f32, device, 4), nothing = concatenate({a, zeros_like(a)}, 2);
    for (int64_t shift : {INT64_MIN, int64_t{-4}, int64_t{5}, INT64_MAX}) {
      const auto op = [&](const std::vector<Tensor>& in) { return join_upsampled(in[0], in[1], in[2], shift); };
      CHECK(same_bits(op({a, z, bias}), nothing));
      const std::vector<Tensor> gradients = gradients_of(op, {a, z, bias}, dy);
      CHECK(same_bits(gradients[1], zeros_like(z)));
      CHECK(same_bits(gradients[2], zeros_like(bias)));
    }
  });
}

TEST_CASE("bag_cross_entropy: the formula, on every device and dtype") {
  for (const Bag& of : std::vector<Bag>{
           {2, 14, 5, 3, {}}, {1, 40, 300, 4, {}}, {3, 6, 7, 2, {6, 5, 1}}, {2, 5, 4, 1, {}}, {2, 3, 4, 2, {}}, {1, 3, 4, 5, {}}})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor logits = drawn({of.b, of.c / of.size, of.v}, dtype, device, 5);
      const std::vector<int64_t> ids = some_ids(of);
      const Tensor lengths = of.lengths.empty() ? Tensor() : ids_of(of.lengths, {of.b}, device);
      const double got = values_of(bag_cross_entropy(logits, ids_of(ids, {of.b, of.c}, device), of.size, lengths))[0];
      CHECK(std::abs(got - naive_bag(values_of(logits), ids, of)) <= static_cast<double>(of.v + 8) * 8 * sum_unit(dtype));
    });
}

TEST_CASE("bag_cross_entropy: an id that the vocabulary does not have is NaN off the cpu") {
  const Tensor loss =
      bag_cross_entropy(drawn({1, 2, 3}, Dtype::f32, Device::cuda_emulated, 1), ids_of({0, 1, 2, 3}, {1, 4}, Device::cuda_emulated), 2);
  CHECK(std::isnan(values_of(loss)[0]));
}

TEST_CASE("cells: messages") {
  const Tensor x({2, 7, 3}), logits({1, 2, 3}), ids = ids_of({0, 1, 2, 1}, {1, 4}, Device::cpu);
  const std::pair<std::function<void()>, std::string> expected[] = {
      {[&] { cell_mean(x, 0); }, "cell_mean: the cell size is 0, expected 1 or more"},
      {[&] { cell_max(x, -2); }, "cell_max: the cell size is -2, expected 1 or more"},
      {[&] { cell_windows(x, 0, 3); }, "cell_windows: the cell size is 0, expected 1 or more"},
      {[&] { cell_windows(x, 3, 2); }, "cell_windows: the kernel has 2 positions, expected at least the 3 of a cell"},
      {[&] { cell_windows(x, 3, int64_t{1} << 62); }, "tensor: [2 2 3 4611686018427387904] f32 is larger than any memory"},
      {[&] { cell_windows(x, 3, 6, 4); },
          "cell_windows: the history has 4 positions, expected 0 .. kernel - size = 3, and at most the 7 of x_bcd"},
      {[&] { cell_windows(x, 3, 30, 8); },
          "cell_windows: the history has 8 positions, expected 0 .. kernel - size = 27, and at most the 7 of x_bcd"},
      {[&] { whole_cells(ids_of({4}, {1}, Device::cpu), 0); }, "whole_cells: the cell size is 0, expected 1 or more"},
      {[&] { whole_cells(x, 2); }, "whole_cells: lengths_b[2 7 3] is f32, expected i64"},
      {[&] { text_lengths(x); }, "text_lengths: targets_bc[2 7 3] is f32, expected i64"},
      {[&] {
         join_upsampled(x, Tensor({1, 2, 6}), Tensor({3}), 0);
       },
          "join_upsampled: index b is 2 in a_bcd[2 7 3] but 1 in z_bmx[1 2 6]"},
      {[&] { bag_cross_entropy(logits, ids, 0); }, "bag_cross_entropy: the cell size is 0, expected 1 or more"},
      {[&] { bag_cross_entropy(logits, ids, 3); },
          "bag_cross_entropy: logits_bmv[1 2 3] has 2 cells, expected the same number as ids_bc[1 4] (1 cells of 3 tokens)"},
      {[&] {
         bag_cross_entropy(logits, ids_of({0, 1, 3, 1}, {1, 4}, Device::cpu), 2);
       },
          "bag_cross_entropy: id 3 at [0 2] is outside the vocabulary of 3"},
      {[&] { bag_cross_entropy(logits, ids, 2, ids_of({5}, {1}, Device::cpu)); },
          "bag_cross_entropy: length 5 at [0] of lengths_b is outside 0 .. 4"}};
  for (const auto& [call, message] : expected) CHECK(message_of(call) == message);
}
