// The wrapped instructions, and CUDA's warp functions and atomics, against their definitions in the PTX ISA and the CUDA
// programming guide, written out on whole matrices and warps: on the emulator in every order of threads, and on the GPU.
#include "cuda/ptx.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "cuda/device/device_memory.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/cuda/ptx/ptx_kernels.h"
#include "tests/ops/values.h"

using namespace ricci;
using namespace ricci::ptx_kernels;

namespace {

// Values of a type that tensors lack, on a device.
template <class T> struct Buffer {
  Tensor bytes;
  Buffer(const std::vector<T>& values, Device device) {
    const Tensor host({static_cast<int64_t>(values.size() * sizeof(T) + 3) / 4}, Dtype::f32);
    std::memcpy(host.raw(), values.data(), values.size() * sizeof(T));
    bytes = to(host, device);
  }
  T* data() const { return static_cast<T*>(bytes.raw()); }
  std::vector<T> host() const {
    const Tensor host = to(bytes, Device::cpu);
    return {static_cast<const T*>(host.raw()), static_cast<const T*>(host.raw()) + static_cast<size_t>(host.bytes()) / sizeof(T)};
  }
};

void on_emulator_and_gpu(const std::function<void(Device)>& f) {
  for (emu::Options::Order order : {emu::Options::Order::forward, emu::Options::Order::reverse, emu::Options::Order::random}) {
    WithOptions options;
    options->order = order;
    if (is_tested(Device::cuda_emulated)) f(Device::cuda_emulated);
  }
  static bool said = false;
  if (available(Device::cuda)) f(Device::cuda);
  else if (!std::exchange(said, true)) MESSAGE("skipped on cuda: ", std::string(why_not(Device::cuda)));
}

// Small multiples of 1/8. Every type holds them exactly, and f32 holds sums of 16 of their products exactly.
float small_number(size_t i) { return static_cast<float>(static_cast<int>(i * 37 % 61) - 30) / 8; }

// The position of element i of a lane's fragment, as in the ISA for m16n8k16.
struct At {
  size_t row, column;
};
At a_at(size_t lane, size_t i) { return {i < 2 || (4 <= i && i < 6) ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)}; }
At b_at(size_t lane, size_t i) { return {lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane / 4}; }
At c_at(size_t lane, size_t i) { return {i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)}; }

void check_mma(Device device) {
  const auto a = [&](At at) { return small_number(at.row * 16 + at.column); };
  const auto b = [&](At at) { return small_number(1000 + at.row * 8 + at.column); };
  std::vector<uint32_t> of_a(128), of_b(64);
  std::vector<float> of_c(128), expected(128);
  for (size_t lane = 0; lane < 32; ++lane) {
    for (size_t i = 0; i < 8; ++i) of_a[lane * 4 + i / 2] |= static_cast<uint32_t>(bf16(a(a_at(lane, i))).bits) << 16 * (i % 2);
    for (size_t i = 0; i < 4; ++i) of_b[lane * 2 + i / 2] |= static_cast<uint32_t>(bf16(b(b_at(lane, i))).bits) << 16 * (i % 2);
    for (size_t i = 0; i < 4; ++i) {
      const At at = c_at(lane, i);
      float sum = of_c[lane * 4 + i] = small_number(2000 + at.row * 8 + at.column);
      for (size_t k = 0; k < 16; ++k) sum += a({at.row, k}) * b({k, at.column});
      expected[lane * 4 + i] = sum;
    }
  }
  const Buffer<uint32_t> a_device(of_a, device), b_device(of_b, device);
  const Buffer<float> c_device(of_c, device);
  ricci::launch("mma", device, {1, 32}, Mma{a_device.data(), b_device.data(), c_device.data()});
  CHECK(c_device.host() == expected);
}

template <int N, bool transposed> void check_ldmatrix(Device device) {
  std::vector<uint16_t> x(64 * N);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i * 251);
  const Buffer<uint16_t> x_device(x, device);
  const Buffer<uint32_t> r_device(std::vector<uint32_t>(32 * N), device);
  ricci::launch("ldmatrix", device, {1, 32}, Ldmatrix<N, transposed>{x_device.data(), r_device.data()});
  std::vector<uint32_t> expected;
  for (size_t lane = 0; lane < 32; ++lane)
    for (size_t matrix = 0; matrix < N; ++matrix) {
      const auto at = [&](size_t row, size_t column) -> uint32_t {
        return x[matrix * 64 + (transposed ? column * 8 + row : row * 8 + column)];
      };
      expected.push_back(at(lane / 4, lane % 4 * 2) | at(lane / 4, lane % 4 * 2 + 1) << 16);
    }
  CHECK(r_device.host() == expected);
}

template <int N> void check_pipeline(Device device) {
  for (int bytes : {4, 12, 200, 64 * N, 64 * N + 4, 5 * 64 * N - 8}) {
    const int tiles = (bytes + 64 * N - 1) / (64 * N);
    std::vector<char> x(static_cast<size_t>(bytes)), expected(static_cast<size_t>(tiles) * 64 * N);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<char>(i % 127 + 1);
    for (size_t i = 0; i < expected.size(); ++i) {
      const size_t in_tile = i / N % 64, from = (i / N - in_tile + 63 - in_tile) * N + i % N;
      expected[i] = from < static_cast<size_t>(bytes) ? x[from] : 0;
    }
    x.resize(static_cast<size_t>((bytes + N - 1) / N * N), 127);  // not copied, but compute-sanitizer sees a read of the full last part
    const Buffer<char> x_device(x, device), y_device(std::vector<char>(expected.size()), device);
    ricci::launch("pipeline", device, {1, 64}, Pipeline<N>{x_device.data(), y_device.data(), bytes, tiles});
    CAPTURE(bytes);
    CHECK(y_device.host() == expected);
  }
}

// The values of Words for thread t.
std::vector<int> expected_words(const std::vector<int>& x, size_t t) {
  const size_t first = t / 32 * 32, lane = t % 32;
  const int v = x[t];
  const auto mask = [&](auto with) {
    unsigned bits = 0;
    for (size_t l = 0; l < 32; ++l) bits |= unsigned{with(x[first + l])} << l;
    return static_cast<int>(bits);
  };
  const bool found = mask([&](int value) { return value == x[3]; }) != 0;
  return {mask([](int value) { return value > 0; }), found, !found, mask([&](int value) { return (value & 3) == (v & 3); }),
      x[first + (lane + 5) % 32], lane % 16 >= 3 ? x[t - 3] : v, lane + 9 < 32 ? x[t + 9] : v, x[t ^ 6]};
}

// The products of warpgroups, of whole matrices.
template <int columns, bool transposed, bool accumulate, bool left_in_shared = false> void check_wgmma(Device device) {
  using Kernel = Wgmma<columns, transposed, accumulate>;
  constexpr size_t depth = Kernel::kDepth, n = columns, threads = 128;
  const auto a = [](size_t row, size_t k) { return small_number(row * depth + k); };
  const auto b = [](size_t k, size_t column) { return small_number(1000 + k * 131 + column); };
  std::vector<uint32_t> of_a;
  std::vector<bf16> of_b(depth * n), rows_of_a;
  for (size_t i = 0; i < 64 * depth; ++i) rows_of_a.push_back(bf16(a(i / depth, i % depth)));
  std::vector<float> of_d, expected;
  for (size_t k = 0; k < depth; ++k)
    for (size_t column = 0; column < n; ++column) of_b[transposed ? k * n + column : column * depth + k] = bf16(b(k, column));
  for (size_t thread = 0; thread < threads; ++thread) {
    const size_t row = thread / 32 * 16 + thread % 32 / 4, pair = thread % 4 * 2;
    for (size_t i = 0; i < depth / 4; ++i) {
      const size_t of_register = row + i % 2 * 8, k = i / 4 * 16 + i % 4 / 2 * 8 + pair;
      of_a.push_back(bf16(a(of_register, k)).bits | static_cast<uint32_t>(bf16(a(of_register, k + 1)).bits) << 16);
    }
    for (size_t i = 0; i < n / 2; ++i) {
      const size_t of_element = row + i % 4 / 2 * 8, column = i / 4 * 8 + pair + i % 2;
      of_d.push_back(accumulate ? small_number(of_element + 77 * column) : std::numeric_limits<float>::quiet_NaN());
      float sum = accumulate ? of_d.back() : 0;
      for (size_t k = 0; k < depth; ++k) sum += a(of_element, k) * b(k, column);
      expected.push_back(sum);
    }
  }
  const Buffer<bf16> b_device(of_b, device);
  const Buffer<float> d_device(of_d, device);
  if constexpr (left_in_shared) {
    using Shared = WgmmaShared<transposed, accumulate>;
    const Buffer<bf16> a_device(rows_of_a, device);
    ricci::launch("wgmma", device, {1, threads, Shared::kBytes}, Shared{a_device.data(), b_device.data(), d_device.data()});
  } else {
    const Buffer<uint32_t> a_device(of_a, device);
    ricci::launch("wgmma", device, {1, threads, Kernel::kBytes}, Kernel{a_device.data(), b_device.data(), d_device.data()});
  }
  CHECK(d_device.host() == expected);
}

// Subnormal numbers are 0.
double flushed(double x) { return std::abs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; }

bool is_near(float got, double exact, double relative) {
  if (std::isnan(exact)) return std::isnan(got);
  return std::signbit(got) == std::signbit(exact) && (got == exact || std::abs(got - exact) <= relative * std::abs(exact));
}

}  // namespace

TEST_CASE("mma: the matrices that the fragments stand for are multiplied") { on_emulator_and_gpu(check_mma); }

TEST_CASE("wgmma: the matrices that registers and descriptors stand for are multiplied") {
  on_emulator_and_gpu([](Device device) {
    if (!device_memory(device).has_wgmma()) {
      MESSAGE("skipped on cuda: ", "it has no wgmma, or this binary no code for 90a");
      return;
    }
    check_wgmma<64, false, false>(device);
    check_wgmma<64, true, true>(device);
    check_wgmma<128, false, true>(device);
    check_wgmma<128, true, false>(device);
    check_wgmma<64, false, false, true>(device);
    check_wgmma<64, false, true, true>(device);
    check_wgmma<64, true, true, true>(device);
  });
}

TEST_CASE("ldmatrix: one, two, four matrices, also transposed") {
  on_emulator_and_gpu([](Device device) {
    check_ldmatrix<1, false>(device), check_ldmatrix<2, false>(device), check_ldmatrix<4, false>(device);
    check_ldmatrix<1, true>(device), check_ldmatrix<2, true>(device), check_ldmatrix<4, true>(device);
  });
}

TEST_CASE("asynchronous copies: three tiles in flight, every size, zeros beyond the end") {
  on_emulator_and_gpu([](Device device) { check_pipeline<4>(device), check_pipeline<8>(device), check_pipeline<16>(device); });
}

TEST_CASE("rounding to bf16") {
  on_emulator_and_gpu([](Device device) {
    std::vector<float> x(256);
    for (size_t i = 0; i < 256; ++i) x[i] = __builtin_bit_cast(float, static_cast<uint32_t>(0x3f800000u + i * 0x1355u + (i % 16 << 23)));
    x[0] = 0, x[1] = -HUGE_VALF, x[5] = 1 + 0x1p-8f, x[6] = 1 + 0x3p-8f;
    const Buffer<float> x_device(x, device);
    const Buffer<uint32_t> packed(std::vector<uint32_t>(256), device);
    ricci::launch("rounding", device, {1, 256}, Rounding{x_device.data(), packed.data()});
    const std::vector<uint32_t> pairs = packed.host();
    for (size_t i = 0; i < 256; ++i) {
      CAPTURE(x[i]);
      CHECK(pairs[i] == (bf16(x[i]).bits | static_cast<uint32_t>(bf16(-x[i]).bits) << 16));
    }
    CHECK((pairs[5] & 0xffffu) == 0x3f80u);  // to even
    CHECK((pairs[6] & 0xffffu) == 0x3f82u);
  });
}

TEST_CASE("approximations: powers of two and reciprocals") {
  on_emulator_and_gpu([](Device device) {
    std::vector<float> x(256);
    for (size_t i = 0; i < 256; ++i) x[i] = (static_cast<float>(i) - 125) * 0.999f;
    x[0] = -HUGE_VALF, x[1] = HUGE_VALF, x[2] = -1e30f, x[3] = -127, x[4] = -149, x[5] = 0, x[6] = -0.0f;
    x[251] = std::numeric_limits<float>::quiet_NaN(), x[252] = 0x1p-127f, x[253] = -0x1p-127f, x[254] = 0x1p-126f, x[255] = -0x1p127f;
    const Buffer<float> x_device(x, device), powers(std::vector<float>(256), device), reciprocals(std::vector<float>(256), device);
    ricci::launch("approximations", device, {1, 256}, Approximations{x_device.data(), powers.data(), reciprocals.data()});
    const std::vector<float> power = powers.host(), reciprocal = reciprocals.host();
    for (size_t i = 0; i < 256; ++i) {
      CAPTURE(x[i]);
      CHECK(is_near(power[i], flushed(std::exp2(static_cast<double>(x[i]))), 0x1p-21));
      CHECK(is_near(reciprocal[i], flushed(1 / flushed(x[i])), 0x1p-21));
    }
  });
}

TEST_CASE("votes, matches, shuffles") {
  std::vector<int> x(64);
  for (int i = 0; i < 64; ++i) x[static_cast<size_t>(i)] = (i * 29 % 64 - 31) * (i % 5 + 1);
  on_emulator_and_gpu([&](Device device) {
    const Buffer<int> x_device(x, device), out(std::vector<int>(Words::kWords * 64), device);
    ricci::launch("words", device, {1, 64}, Words{x_device.data(), out.data()});
    const std::vector<int> got = out.host();
    for (size_t t = 0; t < 64; ++t) {
      const std::vector<int> want = expected_words(x, t);
      REQUIRE(want.size() == Words::kWords);
      for (size_t word = 0; word < want.size(); ++word) {
        INFO("word ", word, ", t ", t);
        CHECK(got[word * 64 + t] == want[word]);
      }
    }
  });
}

TEST_CASE("atomics of many blocks") {
  on_emulator_and_gpu([](Device device) {
    const Buffer<int> ints(std::vector<int>(4), device);
    const Buffer<float> f32({0}, device);
    const Buffer<double> f64({0}, device);
    const Buffer<unsigned long long> u64({0}, device);
    int* cells = ints.data();
    ricci::launch("atomics", device, {9, 128}, Atomics{cells, cells + 1, cells + 2, cells + 3, f32.data(), f64.data(), u64.data()});
    const std::vector<int> got = ints.host();
    CHECK(got[0] == 1151 * 1152 / 2);
    CHECK((got[1] >= 1 && got[1] <= 1152));
    CHECK(got[2] == 1);
    CHECK(got[3] == 7);
    CHECK(f32.host()[0] == 576);
    CHECK(f64.host()[0] == 288);
    CHECK(u64.host()[0] == (1152ull << 32 | 1152));
  });
}

TEST_CASE("a launch of more threads than its kernel was compiled for is an error on every device") {
  for (Device device : {Device::cuda_emulated, Device::cuda})
    CHECK(message_of([&] {
      ricci::launch("pipeline", device, {1, 128}, Pipeline<4>{});
    }) == "pipeline: 128 threads per block, expected at most 64 (kThreads of the kernel)");
}
