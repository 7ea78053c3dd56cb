// The flash attention kernels in bf16: their results against the exact values, beside the definition carried out in bf16.
#include <algorithm>
#include <set>
#include <vector>

#include "ops/attention/flash.h"
#include "ops/attention/flash_tile.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/ops/attention/attention_low_precision.h"

using namespace ricci;

namespace {

// q, k and v blocks (0, 1, 2) of a packed gradient.
Tensor block_of(const Tensor& dqkv, int64_t block) {
  const Values all = values_of(dqkv);
  const int64_t d = dqkv.shape()[2] / 3;
  Values part;
  for (int64_t row = 0; row < dqkv.shape()[0] * dqkv.shape()[1]; ++row)
    part.insert(part.end(), all.begin() + (row * 3 + block) * d, all.begin() + (row * 3 + block + 1) * d);
  return tensor_of(part, {static_cast<int64_t>(part.size())}, Dtype::f64, Device::cpu);
}

void check_errors(const Case& of, const Tensor& qkv, const Tensor& dy, const ForwardAndBackward& got) {
  const Tensor q64 = convert(to(qkv, Device::cpu), Dtype::f64), dy64 = convert(to(dy, Device::cpu), Dtype::f64);
  const ForwardAndBackward exact = run(naive_attention, q64, dy64, of.options());
  const ForwardAndBackward naive = LowPrecision<bf16>::run(of, convert(q64, Dtype::f32), convert(dy64, Dtype::f32));
  CHECK(distance(got.y, exact.y) <= 2 * distance(naive.y, exact.y));
  for (int64_t block : {0, 1, 2}) {
    CAPTURE(block);
    const Tensor expected = block_of(exact.dqkv, block);
    CHECK(distance(block_of(got.dqkv, block), expected) <= 2 * distance(block_of(naive.dqkv, block), expected));
  }
}

void check(const Case& of, Device device) {
  CAPTURE(of.text());
  const Tensor qkv = to(convert(of.qkv(), Dtype::bf16), device), dy = to(convert(of.dy(), Dtype::bf16), device);
  REQUIRE(attention_kernels::flash_fits(attention_kernels::problem_of("attention", qkv, of.options(device)), {&qkv, &dy}));
  check_errors(of, qkv, dy, run(attention, qkv, dy, of.options(device)));
}

void on_gpus(const std::function<void(Device)>& f) {
  on_every_device([&](Device device) {
    if (device != Device::cpu) f(device);
  });
}

}  // namespace

TEST_CASE("flash attention and its backward are as exact as bf16 allows") {
  on_gpus([](Device device) {
    for (int64_t c : {1, 7, 63, 64, 65, 130})
      for (bool causal : {true, false}) check({1, c, 2, 32, causal, 0}, device);
    for (int64_t width : {64, 96, 128})
      for (bool causal : {true, false}) check({1, 130 + width / 32, 1, width, causal, 0}, device);
    check({2, 65, 3, 64, true, 0}, device);
    check({1, 257, 1, 64, true, 0}, device);
    check({3, 31, 1, 96, false, 0}, device);
  });
}

// What eight lanes read or write at once: 16 bytes each, one chunk of 8 rows or the chunks of 128 bytes.
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
    for (int64_t window : {1, 40, 64, 100})
      for (bool causal : {true, false}) check({1, 150, 1, window == 40 ? 64 : 32, causal, window}, device);
    check({1, 300, 1, 128, true, 33}, device);
    check({1, 140, 1, 96, false, 20}, device);
  });
}

TEST_CASE("flash attention of scores that grow from key to key") {
  on_gpus([](Device device) {
    for (int64_t width : {32, 64, 128}) {
      CAPTURE(width);
      const Case of{1, 200, 1, width, width == 64, 0};
      const Tensor wide = of.qkv();
      for (int64_t s = 0; s < of.c; ++s)
        for (int64_t x = 0; x < width; ++x) {
          double* const row = wide.data<double>() + s * 3 * width;
          row[x] *= 3;
          row[width + x] *= 1 + static_cast<double>(s) / 32;
        }
      const Tensor qkv = to(convert(wide, Dtype::bf16), device), dy = to(convert(of.dy(), Dtype::bf16), device);
      check_errors(of, qkv, dy, run(attention, qkv, dy, of.options()));
    }
  });
}

TEST_CASE("flash attention drops the weights that the definition drops") {
  on_gpus([](Device device) {
    for (int64_t c : {5, 66, 132, 135}) check({2, c, 2, 32, c % 2 == 0, 0, 0.3}, device);
    check({1, 130, 1, 64, true, 0, 0.5}, device);
    check({1, 65, 2, 96, false, 9, 0.2}, device);
    check({1, 129, 1, 128, true, 0, 0.1}, device);
  });
}

TEST_CASE("flash attention over padded sequences") {
  on_gpus([](Device device) {
    check({3, 130, 2, 32, true, 0, 0, {130, 64, 1}}, device);
    check({3, 150, 1, 64, false, 0, 0, {129, 0, 65}}, device);
    check({2, 140, 1, 96, false, 30, 0.2, {100, 5}}, device);
    check({2, 66, 1, 128, true, 0, 0, {66, 40}}, device);
  });
}

TEST_CASE("flash attention does not read what padding holds, and a query without keys gives zero") {
  on_gpus([](Device device) { check_padding({2, 140, 1, 32, false, 20, 0, {0, 70}}, Dtype::bf16, device); });
}

TEST_CASE("flash attention has the same bits in every order of threads") {
  for (const Case& of : std::vector<Case>{
           {1, 140, 2, 32, true, 0}, {1, 130, 1, 64, true, 70, 0.3}, {1, 66, 1, 96, false, 0}, {1, 65, 1, 128, true, 0, 0.2}}) {
    CAPTURE(of.width);
    const Tensor qkv = to(convert(of.qkv(), Dtype::bf16), Device::cuda_emulated),
                 dy = to(convert(of.dy(), Dtype::bf16), Device::cuda_emulated);
    const ForwardAndBackward expected = run(attention, qkv, dy, of.options());
    for (emu::Options::Order order : {emu::Options::Order::reverse, emu::Options::Order::random}) {
      WithOptions options;
      options->order = order;
      const ForwardAndBackward got = run(attention, qkv, dy, of.options());
      CHECK(same_bits(got.y, expected.y));
      CHECK(same_bits(got.dqkv, expected.dqkv));
    }
  }
}

TEST_CASE("bf16 attention of what flash attention does not take") {
  on_gpus([](Device device) {
    const Case of{1, 70, 2, 32, true, 0};
    const Tensor dy = to(convert(of.dy(), Dtype::bf16), device), packed = convert(of.qkv(), Dtype::bf16);
    const Tensor longer({packed.size() + 1}, Dtype::bf16);
    std::copy_n(packed.data<bf16>(), packed.size(), longer.data<bf16>() + 1);
    const Tensor odd = to(longer, device).rows(1, packed.size()).reshaped(packed.shape());  // 2 bytes off 16
    const attention_kernels::Problem problem = attention_kernels::problem_of("attention", odd, of.options());
    CHECK(!attention_kernels::flash_fits(problem, {&odd}));
    CHECK(attention_kernels::flash_fits(problem, {&dy}));
    check_errors(of, odd, dy, run(attention, odd, dy, of.options()));
  });
}
