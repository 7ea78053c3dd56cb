// Full kernels on the emulator: fences, shared memory, flags, in every order; OS threads; device memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "cuda/emulator/fiber.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/cuda/emulator/planted_bugs.h"

namespace {

using Order = emu::Options::Order;

struct Index {
  unsigned* out;
  __device__ void operator()() const {
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    const unsigned rest = threads - thread / 32 * 32, mask = rest < 32 ? (1u << rest) - 1 : ~0u;
    out[block * threads + thread] = block * 1000 + __shfl_sync(mask, thread, 0);
  }
};

struct Transpose {
  const float* x;
  float* y;
  __device__ void operator()() const {
    SHARED(float, tile, [32][33]);
    float* copy = emu::dynamic_shared<float>();
    for (unsigned r = threadIdx.y; r < 32; r += blockDim.y) tile[r][threadIdx.x] = x[r * 32 + threadIdx.x];
    __syncthreads();
    for (unsigned r = threadIdx.y; r < 32; r += blockDim.y) copy[r * 32 + threadIdx.x] = tile[threadIdx.x][r];
    __syncwarp();
    for (unsigned r = threadIdx.y; r < 32; r += blockDim.y) y[r * 32 + 31 - threadIdx.x] = copy[r * 32 + 31 - threadIdx.x];
  }
};

// Warp 1 waits for a flag that warp 0 sets.
struct Flag {
  int* out;
  __device__ void operator()() const {
    SHARED(int, flag, [1]);
    if (threadIdx.x == 0) flag[0] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
      out[0] = 7;
      __threadfence();
      atomicExch(&flag[0], 1);
    }
    if (threadIdx.x == 32) {
      while (atomicAdd(&flag[0], 0) == 0) __nanosleep(20);
      __threadfence();
      out[1] = out[0] + 1;
    }
  }
};

// The position of each thread in the order, before a barrier and after it: position [2][blocks * threads].
struct Arrivals {
  int *count, *position;
  __device__ void operator()() const {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    position[i] = atomicAdd(&count[0], 1);
    __syncthreads();
    position[n + i] = atomicAdd(&count[1], 1);
  }
};

std::vector<int> arrivals(Order order, uint64_t seed) {
  WithOptions options;
  options->order = order, options->seed = seed;
  const auto count = DeviceArray<int>::zeros(2);
  const DeviceArray<int> position(size_t{2} * 7 * 96);
  launch({7, 96}, Arrivals{count.data(), position.data()});
  return position.host();
}

void check_index() {
  const DeviceArray<unsigned> index(size_t{12} * 40);
  launch({dim3(2, 3, 2), dim3(5, 4, 2)}, Index{index.data()});
  for (unsigned i = 0; i < 480; ++i) CHECK(index.host()[i] == i / 40 * 1000 + i % 40 / 32 * 32);
}

void check_transpose() {
  std::vector<float> values(1024);
  for (size_t i = 0; i < 1024; ++i) values[i] = static_cast<float>(i);
  const DeviceArray<float> x(values), y(1024);
  launch({1, dim3(32, 4), 4096}, Transpose{x.data(), y.data()});
  const std::vector<float> transposed = y.host();
  for (size_t i = 0; i < 1024; ++i) CHECK(transposed[i] == static_cast<float>(i % 32 * 32 + i / 32));
}

}  // namespace

TEST_CASE("the orders of blocks, warps and lanes") {
  const int n = 7 * 96;
  const std::vector<int> forward = arrivals(Order::forward, 1), reverse = arrivals(Order::reverse, 1), random = arrivals(Order::random, 1);
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    CHECK(forward[at] == i);
    CHECK(reverse[at] == n - 1 - i);
    // After the barrier the warp of the last thread to arrive comes first, and in it that thread.
    CHECK(forward[n + at] / 96 == i / 96);
    CHECK(forward[n + at] % 96 == (i % 96 < 64 ? i % 96 + 32 : i % 96 == 95 ? 0 : i % 96 - 63));
    CHECK(reverse[n + at] == forward[2 * n - 1 - at]);
  }
  CHECK(random == arrivals(Order::random, 1));
  CHECK(random != arrivals(Order::random, 2));
  for (int half : {0, n}) {
    std::vector<int> sorted(random.begin() + half, random.begin() + half + n);
    CHECK(sorted != std::vector<int>(forward.begin() + half, forward.begin() + half + n));
    CHECK(sorted != std::vector<int>(reverse.begin() + half, reverse.begin() + half + n));
    std::sort(sorted.begin(), sorted.end());
    for (int i = 0; i < n; ++i) CHECK(sorted[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("kernels give the same results in every order, with one worker or more") {
  WithOptions options;
  for (int workers : {1, 3})
    for (Order order : {Order::forward, Order::reverse, Order::random})
      for (uint64_t seed : {1, 2}) {
        options->workers = workers, options->order = order, options->seed = seed;
        const auto out = DeviceArray<float>::zeros(1);
        const auto arrived = DeviceArray<unsigned>::zeros(1);
        const DeviceArray<float> parts(size_t{9} * 128);
        launch({9, 128}, planted::LastBlockSums<true>{parts.data(), out.data(), arrived.data()});
        CHECK(out.host()[0] == 9 * 128 * 129 / 2);

        check_index();
        check_transpose();

        const DeviceArray<int> flagged(2);
        launch({1, 64}, Flag{flagged.data()});
        CHECK(flagged.host() == std::vector<int>{7, 8});
      }
}

TEST_CASE("launches from multiple OS threads at a time") {
  std::vector<float> out(4);
  std::vector<std::thread> threads;
  for (float& value : out)
    threads.emplace_back([&value] {
      for (int repeat = 0; repeat < 5; ++repeat) {
        const DeviceArray<float> parts(size_t{5} * 128);
        const auto sum = DeviceArray<float>::zeros(1);
        const auto arrived = DeviceArray<unsigned>::zeros(1);
        launch({5, 128}, planted::LastBlockSums<true>{parts.data(), sum.data(), arrived.data()});
        value = sum.host()[0];
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(out == std::vector<float>(4, 5 * 128 * 129 / 2));
}

TEST_CASE("device memory: NaN at first, copies, zeros") {
  const DeviceArray<float> x(7);
  for (float value : x.host()) CHECK(std::isnan(value));
  emu::fill_zero(x.data(), 28);
  const std::vector<float> two{1, 2};
  emu::copy_in(x.data() + 2, two.data(), 8);
  emu::copy_within(x.data() + 5, x.data() + 2, 8);
  CHECK(x.host() == std::vector<float>{0, 0, 1, 2, 0, 1, 2});
  CHECK(reinterpret_cast<uintptr_t>(x.data()) % 256 == 0);
  void* nothing = emu::allocate(0);
  CHECK(nothing != nullptr);
  emu::release(nothing);
  emu::release(nullptr);
}

// ---- Options::ends: large launches run only their ends, over sparse memory, and an index of 32 bits that overflows is named

#if !RICCI_ASAN && !RICCI_TSAN  // their own memory leaves too little
namespace {

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
    CHECK(contains(error, " of block 2097152: it accesses byte -85899"));
    if (order == Order::forward)
      CHECK(error == "kernel: thread 0 of block 2097152: it accesses byte -8589934592 of a device allocation of 8589938688 bytes "
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
  const std::string error = "emulator: the options 'ends' and 'isolate' cannot be combined";
  CHECK(error_of([] { emu::check_options(); }) == error);
  CHECK(error_of([] { launch({1, 1}, planted::FillByIndex<int>{nullptr}); }) == error);
}

#else

TEST_CASE("ends: not in a build with a sanitizer") {
  WithOptions options;
  options->ends = true;
  CHECK(error_of([] { emu::check_options(); }) == "emulator: the option 'ends' is not supported in a build with a sanitizer");
}

#endif
