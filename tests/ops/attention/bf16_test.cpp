// Attention in bf16 on GPUs: the flash kernels, other widths padded for them, and blocks for the rest. The results and the oracle in bf16
// are compared with the exact values.
#include <algorithm>
#include <set>
#include <vector>

#include "ops/attention/flash/flash.h"
#include "ops/attention/flash/tile.h"
#include "tests/ops/attention/cases.h"
#include "tests/sanitized.h"

using namespace ricci;
using attention_kernels::GpuPath;

namespace {

attention_kernels::Problem problem_of(const Case& of, const std::vector<Tensor>& inputs) {
  const auto [q, k, v] = of.slices(inputs);
  Case unpadded = of;  // its pointer would point into `of`
  unpadded.lengths.clear();
  return attention_kernels::check("attention", q, k, v, of.sees, unpadded.options()).problem;
}

GpuPath path_of(const Case& of, Dtype dtype, Device device = Device::cuda_emulated) {
  const std::vector<Tensor> inputs = as(of.inputs(), dtype, device);
  const auto [q, k, v] = of.slices(inputs);
  return attention_kernels::gpu_path(problem_of(of, inputs), {q, k, v});
}

void check_path(const Case& of, GpuPath path, Device device) {
  CHECK(path_of(of, Dtype::bf16, device) == path);
  check_precision<bf16>(of, device);
}
void check(const Case& of, Device device) { check_path(of, GpuPath::flash, device); }

// The op as gpu/ computes it, for widths that usually go elsewhere.
ForwardAndBackward in_blocks(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy) {
  using namespace attention_kernels;
  set_random_state({5, 1});  // as in run of cases.h
  const auto [q, k, v] = of.slices(inputs);
  const AttentionOptions options = of.options(dy.device());
  Checked checked = attention_kernels::check("attention", q, k, v, of.sees, options);
  checked.problem.dropout = draw_dropout(of.dropout, of.b * of.heads);
  const Outputs out{like(dy), like(dy, {of.b, of.heads, of.c}, Dtype::f32)};
  blocks_forward(checked.problem, checked.slices(), out);
  const std::vector<Tensor> gradients = checked.layout.gradients(inputs);
  blocks_backward(checked.problem, dy, checked.slices(), out, checked.layout.slices(gradients));
  return {out.y_bcd, gradients};
}

}  // namespace

TEST_CASE("flash attention and its backward are as exact as bf16 allows") {
  on_gpus([](Device device) {
    for (int64_t c : {1, 63, 65, 130}) check({1, c, 1, 32, tokens(true)}, device);
    for (int64_t c : {7, 64, 65, 130}) check({1, c, 1, 32, tokens(false)}, device);
    for (int64_t width : {64, 96, 128})
      for (bool causal : {true, false}) check({1, 130 + width / 32, 1, width, tokens(causal)}, device);
    check({2, 65, 3, 64}, device);
    check({1, 193, 1, 64, tokens(true), 0, {}, Place::keys_are_values}, device);  // one key more than a block
    check({3, 31, 1, 96, tokens(false)}, device);
  });
}

TEST_CASE("flash attention of views in one tensor, in two and in three, also as the same columns" * doctest::skip(test::kThreadSanitizer)) {
  on_gpus([](Device device) {
    for (Place place : all_places()) {
      if (place == Place::odd_columns) continue;
      check({1, 70, 2, 32, tokens(true), 0, {}, place}, device);
      check({1, 135, 1, 64, tokens(true, 50), 0.2, {}, place}, device);
    }
    for (int64_t width : {96, 128}) check({1, 70, 1, width, tokens(true), 0, {}, Place::all_the_same}, device);
    check({2, 130, 1, 96, tokens(false), 0, {}, Place::wider_tensors, 7}, device);  // fewer keys than queries
    check({2, 7, 2, 32, tokens(false), 0, {}, Place::three_tensors, 200}, device);  // and more
    check({1, 20, 1, 64, Visibility::causal(60).from(90), 0, {}, Place::keys_are_values, 110}, device);
    check({1, 66, 2, 32, tokens(true), 0, {}, Place::three_tensors, 66, 0.4}, device);
  });
}

TEST_CASE("flash attention to cells of a scale") {
  on_gpus([](Device device) {
    const CellRule inside = CellRule::inside, end = CellRule::end;
    const Visibility all = Visibility::cells(4), window = Visibility::cells(4, 8, 130, inside), far = Visibility::cells(2, 20, 160, end);
    check({1, 300, 1, 32, all, 0, {}, Place::three_tensors, 75}, device);
    check({2, 270, 1, 64, window, 0, {60, 3}, Place::keys_are_values, 67}, device);
    check({1, 270, 1, 32, far, 0.2, {}, Place::wider_tensors, 135}, device);
    check({1, 135, 2, 128, Visibility::cells(3, 2, 50, end), 0, {}, Place::three_tensors, 45}, device);
    check({1, 260, 1, 96, Visibility::cells(16, 0, 16, inside), 0, {}, Place::three_tensors, 16}, device);
    check({1, 140, 1, 32, Visibility::cells(64, 0, 64, inside), 0, {}, Place::three_tensors, 130}, device);
    check({1, 70, 1, 32, Visibility::cells(5, 3, 33, inside).from(100), 0.3, {}, Place::keys_are_values, 34}, device);
  });
}

TEST_CASE("flash attention: huge scores are rounded, but no weight in the backward exceeds 1") {
  WithOptions options;
  for (const bool wgmma : {false, true})
    for (int64_t width : {32, 64})
      for (double size : {100.0, 1e3, 1e4}) {  // scores of size^2
        options->wgmma = wgmma;
        CAPTURE(width);
        CAPTURE(size);
        const Case of{1, 40, 1, width, tokens(true), 0, {}, Place::three_tensors};
        std::vector<Tensor> inputs = of.inputs();
        for (Tensor& t : {std::ref(inputs[0]), std::ref(inputs[1])})
          for (int64_t i = 0; i < t.size(); ++i) t.data<double>()[i] *= size;
        const Tensor dy = to(convert(of.dy(), Dtype::bf16), Device::cuda_emulated);
        const Values dv = values_of(run(of, as(inputs, Dtype::bf16, Device::cuda_emulated), dy).gradients[2]), dy_td = values_of(dy);
        for (size_t i = 0; i < dv.size(); ++i) {
          double sum = 0;  // the sum of |dy| over the queries
          for (size_t k = i % static_cast<size_t>(width); k < dy_td.size(); k += static_cast<size_t>(width)) sum += std::abs(dy_td[k]);
          CHECK(std::abs(dv[i]) <= sum * (1 + 2 * unit(Dtype::bf16)));
        }
      }
}

// Eight lanes read or write together without a conflict of banks: 16 bytes each, one chunk of 8 rows or the chunks of 128 bytes.
template <int width> void check_banks() {
  using Tile = attention_kernels::flash::Tile<width>;
  CAPTURE(width);
  std::set<int> places;
  for (int row = 0; row < 64; ++row)
    for (int chunk = 0; chunk < width / 8; ++chunk) {
      const int offset = Tile::offset(row, chunk);
      CHECK(offset / width == row);
      places.insert(offset);
      if (chunk >= 2) CHECK(Tile::moved(Tile::offset(row, chunk % 2), chunk / 2 * 2) == offset);
    }
  CHECK(places.size() == 64 * width / 8);
  for (int row = 0; row < 64; row += 8)
    for (int chunk = 0; chunk < width / 8; ++chunk) {
      std::set<int> banks;
      for (int r = 0; r < 8; ++r) banks.insert(Tile::offset(row + r, chunk) / 8 % 8);
      CHECK(banks.size() == 8);
    }
}

TEST_CASE("a tile of flash attention holds each element once, and reading a column of chunks meets no bank twice") {
  check_banks<32>();
  check_banks<64>();
  check_banks<96>();
  check_banks<128>();
}

TEST_CASE("flash attention within a window") {
  on_gpus([](Device device) {
    for (int64_t window : {1, 40, 64, 100}) {
      check({1, 150, 1, 32, tokens(window != 64, window)}, device);
      check({1, 150, 1, 64, tokens(window == 64, window)}, device);
    }
    check({1, 300, 1, 128, tokens(true, 33)}, device);
    check({1, 140, 1, 96, tokens(false, 20)}, device);
  });
}

TEST_CASE("flash attention of scores that grow from key to key") {
  on_gpus([](Device device) {
    for (int64_t width : {32, 64, 128}) {
      CAPTURE(width);
      const Case of{1, 140, 1, width, tokens(width == 64)};
      const std::vector<Tensor> wide = of.inputs();
      for (int64_t t = 0; t < of.c; ++t)
        for (int64_t x = 0; x < width; ++x) {
          double* const row = wide[0].data<double>() + t * 3 * width;
          row[x] *= 3;
          row[width + x] *= 1 + static_cast<double>(t) / 32;
        }
      const std::vector<Tensor> inputs = as(wide, Dtype::bf16, device);
      const Tensor dy = to(convert(of.dy(), Dtype::bf16), device);
      check_errors<bf16>(of, inputs, dy, run(of, inputs, dy));
    }
  });
}

TEST_CASE("flash attention drops the weights that the definition drops") {
  on_gpus([](Device device) {
    for (int64_t c : {5, 66, 135}) check({2, c, c > 70 ? 1 : 2, 32, tokens(c % 2 == 0), 0.3}, device);
    check({1, 130, 1, 64, tokens(true), 0.5}, device);
    check({1, 65, 2, 96, tokens(false, 9), 0.2}, device);
    check({1, 129, 1, 128, tokens(true), 0.1}, device);
  });
}

// GPUs of compute capability 9.0 have other kernels for widths 64 and 128; the other tests use them, on the emulator as well.
TEST_CASE("flash attention on GPUs without wgmma") {
  WithOptions options;
  for (const Case& of : std::vector<Case>{{2, 65, 3, 64}, {1, 130, 1, 64, tokens(false), 0.3}, {1, 193, 1, 64, tokens(true, 100)},
           {1, 135, 1, 128}, {1, 129, 1, 128, tokens(true), 0.1}, {3, 150, 1, 64, tokens(false), 0, {129, 0, 65}},
           {1, 135, 1, 64, tokens(true, 50), 0.2, {}, Place::all_the_same},
           {1, 70, 1, 128, tokens(false, 20), 0, {}, Place::keys_are_values}}) {
    options->wgmma = true;
    CHECK(attention_kernels::wgmma_takes(problem_of(of, of.inputs()), Device::cuda_emulated));
    options->wgmma = false;
    CHECK(!attention_kernels::wgmma_takes(problem_of(of, of.inputs()), Device::cuda_emulated));
    check(of, Device::cuda_emulated);
  }
  options->wgmma = true;
  for (int64_t width : {32, 96}) {
    const Case of{1, 5, 1, width};
    CHECK(!attention_kernels::wgmma_takes(problem_of(of, of.inputs()), Device::cuda_emulated));
  }
}

TEST_CASE("flash attention over padded sequences") {
  on_gpus([](Device device) {
    check({3, 130, 1, 32, tokens(true), 0, {130, 64, 1}}, device);
    check({3, 150, 1, 64, tokens(false), 0, {129, 0, 65}}, device);
    check({2, 140, 1, 96, tokens(false, 30), 0.2, {100, 5}}, device);
    check({2, 66, 1, 128, tokens(true), 0, {66, 40}}, device);
    check({2, 200, 1, 64, tokens(true), 0, {193, 60}}, device);
  });
}

TEST_CASE("flash attention has the same bits in every order of threads" * doctest::skip(test::kThreadSanitizer)) {
  for (const Case& of : std::vector<Case>{{1, 140, 1, 32}, {1, 130, 1, 64, tokens(true, 70), 0.3}, {1, 66, 1, 96, tokens(false)},
           {1, 65, 1, 128, tokens(true), 0.2}, {1, 66, 1, 32, tokens(true), 0, {}, Place::all_the_same}, {1, 200, 1, 64, tokens(true)},
           {1, 130, 1, 64, Visibility::cells(4, 3, 90), 0, {}, Place::keys_are_values, 32}}) {
    CAPTURE(of.text());
    const ForwardAndBackward expected = run(of, Dtype::bf16, Device::cuda_emulated);
    for (auto order : {emu::Options::Order::reverse, emu::Options::Order::random}) {
      WithOptions options;
      options->order = order;
      CHECK(same_bits(run(of, Dtype::bf16, Device::cuda_emulated), expected));
    }
  }
}

TEST_CASE("bf16 attention of slices that are not at a multiple of 16 bytes, and of positions beyond 32 bits") {
  on_gpus([](Device device) {
    const Case thirds{1, 70, 2, 32};
    const Tensor dy = to(convert(thirds.dy(), Dtype::bf16), device), packed = convert(thirds.inputs()[0], Dtype::bf16);
    const Tensor longer({packed.size() + 1}, Dtype::bf16);
    std::copy_n(packed.data<bf16>(), packed.size(), longer.data<bf16>() + 1);
    const Tensor odd = to(longer, device).rows(1, packed.size()).reshaped(packed.shape());  // 2 bytes off 16
    attention_kernels::Problem problem = problem_of(thirds, {odd});
    const auto fits = [&](const ColumnSlice& slice) { return attention_kernels::flash_fits(problem, {slice}); };
    CHECK(fits({dy}));
    CHECK(!fits({odd, 0, 64}));
    CHECK(!fits({to(packed, device), 4, 64}));                          // an offset
    CHECK(!fits({drawn({1, 70, 68}, Dtype::bf16, device, 1), 0, 64}));  // rows
    check_errors<bf16>(thirds, {odd}, dy, run(thirds, {odd}, dy));
    problem.sees.cell = int64_t{1} << 23;
    CHECK(!fits({dy}));
  });
}

// ---- Padded heads, and blocks

TEST_CASE("attention in bf16: heads of any width up to 128 are padded for flash attention") {
  on_gpus([](Device device) {
    for (int64_t width : {1, 8, 24, 40, 72, 100, 127}) check_path({1, 65, 1, width}, GpuPath::padded, device);
    check_path({1, 70, 1, 64, tokens(true), 0, {}, Place::odd_columns}, GpuPath::padded, device);
    for (Place place : all_places()) check_path({1, 40, 2, 24, tokens(true), 0.2, {}, place}, GpuPath::padded, device);
    check_path({2, 130, 1, 48, tokens(false), 0.1, {70, 3}, Place::three_tensors, 70}, GpuPath::padded, device);
  });
}

TEST_CASE("attention in bf16: padding reaches nothing, and queries that see nothing give zero, whatever the width") {
  on_gpus([](Device device) {
    for (int64_t width : {24, 136}) {
      const auto causal = [](int64_t t, int64_t j) { return j <= t; };
      check_zeros({2, 20, 1, width, Visibility::causal(), 0, {13, 0}}, Dtype::bf16, device, causal);
      const auto cells = [](int64_t t, int64_t j) { return t - 4 * j >= 3 + 2; };
      check_zeros({2, 30, 2, width, Visibility::cells(4, 2), 0, {7, 4}, Place::three_tensors, 7}, Dtype::bf16, device, cells);
    }
  });
}

TEST_CASE("attention: f32 and f64, wide heads and positions beyond 32 bits go in blocks") {
  for (Dtype dtype : {Dtype::f32, Dtype::f64}) CHECK(path_of({1, 8, 1, 32}, dtype) == GpuPath::blocks);
  const Case far{1, 8, 1, 24, Visibility::cells(Visibility::kMaxTokens), 0, {}, Place::three_tensors, 300};
  for (const Case& of : {far, Case{1, 8, 1, 136}}) CHECK(path_of(of, Dtype::bf16) == GpuPath::blocks);
}

TEST_CASE("attention in bf16 in blocks is as exact") {
  on_gpus([](Device device) {
    const std::vector<Case> cases = {{1, 70, 2, 24, tokens(true), 0.2, {}, Place::keys_are_values},
        {2, 66, 1, 40, tokens(true), 0, {}, Place::all_the_same}, {1, 33, 1, 136},
        {2, 90, 2, 33, Visibility::cells(4, 1, 60, CellRule::end), 0.1, {22, 10}, Place::three_tensors, 22}};
    for (const Case& of : cases) {
      CAPTURE(of.text());
      const std::vector<Tensor> inputs = as(of.inputs(), Dtype::bf16, device);
      const Tensor dy = to(convert(of.dy(), Dtype::bf16), device);
      check_errors<bf16>(of, inputs, dy, in_blocks(of, inputs, dy));
    }
  });
}
