// The products of warpgroups against their definition in the PTX ISA, written out on whole matrices.
#include <limits>

#include "cuda/device/device_memory.h"
#include "tests/cuda/ptx/ptx_fixture.h"
#include "tests/cuda/ptx/ptx_kernels.h"

using namespace ricci;
using namespace ricci::ptx_kernels;

namespace {

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

}  // namespace

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
