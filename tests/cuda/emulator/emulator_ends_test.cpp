// Options::ends: large launches run their ends alone, over sparse memory, and an index of 32 bits that overflows is named.
#include <doctest/doctest.h>

#include "cuda/emulator/fiber.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/cuda/emulator/planted_bugs.h"

#if !RICCI_ASAN && !RICCI_TSAN  // whose own memory leaves no room for so much
namespace {

using Order = emu::Options::Order;
constexpr size_t kThreads = 1024, kBlocks = (size_t{1} << 31) / kThreads + 1;

template <class Index> void fill_all(const DeviceArray<float>& y) {
  launch({static_cast<unsigned>(kBlocks), kThreads}, planted::FillByIndex<Index>{y.data()}, {"caller.cu", 12});
}

float value_at(const DeviceArray<float>& y, size_t i) {
  float value = 0;
  emu::copy_out(&value, y.data() + i, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("ends: an index of 32 bits that overflows is named, one of 64 bits passes, and so does the next launch") {
  WithOptions options;
  options->ends = true;
  for (const Order order : {Order::forward, Order::reverse, Order::random}) {
    options->order = order;
    const DeviceArray<float> y(kBlocks * kThreads);
    const std::string error = error_of([&] { fill_all<int>(y); });
    CHECK(contains(error, " of block 2097152: an access at byte -85899"));
    if (order == Order::forward)
      CHECK(error == "kernel: thread 0 of block 2097152: an access at byte -8589934592 of a device allocation of 8589938688 bytes "
                     "(launched at caller.cu:12)");
    fill_all<int64_t>(y);
    CHECK(value_at(y, kBlocks * kThreads - 1) == 1);
  }
}

TEST_CASE("ends: the first and the last block run, those between them do not, and memory that nobody wrote is zero") {
  WithOptions options;
  options->ends = true;
  const DeviceArray<float> y(kBlocks * kThreads);
  fill_all<int64_t>(y);
  for (const size_t block : {size_t{0}, kBlocks - 1})
    for (const size_t thread : {size_t{0}, kThreads - 1}) CHECK(value_at(y, block * kThreads + thread) == 1);
  for (const size_t block : {size_t{1}, kBlocks / 2, kBlocks - 2}) CHECK(value_at(y, block * kThreads) == 0);
}

TEST_CASE("ends: a launch of fewer than 65,536 threads runs whole") {
  WithOptions options;
  options->ends = true;
  for (const unsigned blocks : {63u, 64u}) {
    const DeviceArray<float> y(blocks * kThreads);
    emu::fill_zero(y.data(), blocks * kThreads * sizeof(float));
    launch({blocks, kThreads}, planted::FillByIndex<int>{y.data()});
    float sum = 0;
    for (const float value : y.host()) sum += value;
    CHECK(sum == static_cast<float>((blocks == 63 ? blocks : 2) * kThreads));
  }
}

TEST_CASE("ends: copies and zeros of sparse memory") {
  WithOptions options;
  options->ends = true;
  const size_t n = (size_t{5} << 20) + 3;
  const DeviceArray<unsigned char> x(n), y(n);
  std::vector<unsigned char> host(n);
  for (size_t i = 0; i < n; ++i) host[i] = static_cast<unsigned char>(i % 251 + 1);
  emu::copy_in(x.data(), host.data(), n);
  CHECK(x.host() == host);
  emu::copy_within(y.data(), x.data(), n);
  const std::vector<unsigned char> copied = y.host();
  for (const size_t i : {size_t{0}, (size_t{1} << 20) - 1, n - (size_t{1} << 20), n - 1}) CHECK(copied[i] == host[i]);
  for (const size_t i : {size_t{1} << 20, n - (size_t{1} << 20) - 1}) CHECK(copied[i] == 0);
  emu::fill_zero(x.data() + 5, n - 10);
  std::fill(host.begin() + 5, host.end() - 5, 0);
  CHECK(x.host() == host);
}

TEST_CASE("ends: not with isolated blocks") {
  WithOptions options;
  options->ends = options->isolate = true;
  const std::string error = "emulator: ends and isolate at once: isolated blocks keep a copy of all memory";
  CHECK(error_of([] { emu::check_options(); }) == error);
  CHECK(error_of([] { launch({1, 1}, planted::FillByIndex<int>{nullptr}); }) == error);
}

#else

TEST_CASE("ends: not in a build with a sanitizer") {
  WithOptions options;
  options->ends = true;
  CHECK(error_of([] { emu::check_options(); }) == "emulator: ends: not in a build with a sanitizer");
}

#endif
