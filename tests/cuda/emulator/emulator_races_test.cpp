// Races between blocks. In any one order blocks run one after the other, so most races leave no trace. Isolated blocks do not see each
// other, and a kernel that is right then is right on hardware. ThreadSanitizer reports these races and ends the program (planted.cpp), so
// its build does not run them.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/cuda/emulator/planted_bugs.h"

namespace {

using Order = emu::Options::Order;
constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::random};

// Each block adds its number to one cell, with a plain read and write or with an atomic.
template <bool atomic> struct Count {
  int* total;
  __device__ void operator()() const {
    const int mine = static_cast<int>(blockIdx.x + gridDim.x * blockIdx.y) + 1;
    if (threadIdx.x == 0) atomic ? void(atomicAdd(total, mine)) : void(*total += mine);
  }
};

// Block 0 writes the cell plainly; the others add to it by atomics, or change it before a fence.
template <bool fence> struct HalfAtomic {
  int* total;
  __device__ void operator()() const {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) *total = 5;
    else if (fence) *total += 1, __threadfence();
    else atomicAdd(total, 1);
  }
};

struct AllWriteOne {
  int* flag;
  __device__ void operator()() const { flag[2] = 1; }
};

// Each block doubles the value of the block before it.
struct Chain {
  float* x;
  __device__ void operator()() const { x[blockIdx.x + 1] = 2 * x[blockIdx.x]; }
};

// Under a lock, each block reads and changes a value.
struct Lock {
  int *lock, *total;
  __device__ void operator()() const {
    if (threadIdx.x != 0) return;
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *total += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
};

// Each block writes every fourth byte, no two the same.
struct Interleaved {
  unsigned char* x;
  __device__ void operator()() const { x[threadIdx.x * gridDim.x + blockIdx.x] = static_cast<unsigned char>(blockIdx.x); }
};

// Each block reads and changes a value, with a fence but no atomic to wait its turn at.
struct FencedCount {
  int* total;
  __device__ void operator()() const {
    if (threadIdx.x != 0) return;
    *total += 1;
    __threadfence();
  }
};

template <class F> void isolated_in_every_order(F f) {
  WithOptions options;
  options->isolate = true;
  for (Order order : kOrders) {
    options->order = order;
    f();
  }
}

template <class Kernel> std::string launch_error(const LaunchShape& shape, const Kernel& kernel) {
  return error_of([&] { launch(shape, kernel, {"caller.cu", 12}); });
}

}  // namespace

TEST_CASE("blocks that read, change and write one cell") {
  {
    WithOptions options;  // one block after the other, nothing is lost
    for (Order order : kOrders) {
      options->order = order;
      const auto total = DeviceArray<int>::zeros(1);
      launch({4, 32}, Count<false>{total.data()});
      CHECK(total.host()[0] == 10);
    }
  }
  const auto total = DeviceArray<int>::zeros(1);
  WithOptions options;
  options->isolate = true;
  CHECK(launch_error({4, 32}, Count<false>{total.data()}) ==
        "kernel: race between blocks 0 and 1: both write byte 0 of a device allocation of 4 bytes (launched at caller.cu:12)");
  options->order = Order::reverse;
  CHECK(contains(
      launch_error({dim3(2, 2), 32}, Count<false>{total.data()}), "kernel: race between blocks (0, 1, 0) and (1, 1, 0): both write"));
  options->workers = 3;
  const auto flag = DeviceArray<int>::zeros(5);
  CHECK(contains(launch_error({6, 32}, AllWriteOne{flag.data()}), "blocks 4 and 5: both write byte 8 of a device allocation of 20 bytes"));
  launch({1, 32}, AllWriteOne{flag.data()});
  CHECK(flag.host() == std::vector<int>{0, 0, 1, 0, 0});
}

TEST_CASE("a plain write next to atomics or to fenced writes") {
  WithOptions options;
  options->isolate = true;
  const auto total = DeviceArray<int>::zeros(3);
  const std::string race =
      "kernel: race between blocks 0 and 1: both write byte 4 of a device allocation of 12 bytes (launched at caller.cu:12)";
  CHECK(launch_error({2, 32}, HalfAtomic<false>{total.data() + 1}) == race);
  CHECK(launch_error({2, 32}, HalfAtomic<true>{total.data() + 1}) == race);
  options->order = Order::reverse;  // the atomic comes first, the fence comes first
  CHECK(launch_error({2, 32}, HalfAtomic<false>{total.data() + 1}) == race);
  CHECK(launch_error({2, 32}, HalfAtomic<true>{total.data() + 1}) == race);
}

TEST_CASE("blocks that read, change and write one cell with a fence, but never wait for each other") {
  isolated_in_every_order([] {
    const auto total = DeviceArray<int>::zeros(2);
    CHECK(contains(launch_error({3, 32}, FencedCount{total.data() + 1}), "both write byte 4 of a device allocation of 8 bytes"));
  });
}

TEST_CASE("a block that reads a value written by another block gets the old value") {
  const auto run = [] {
    const DeviceArray<float> x(std::vector<float>{1, NAN, NAN, NAN, NAN});
    launch({4, 1}, Chain{x.data()});
    return x.host();
  };
  {
    WithOptions options;
    CHECK(run() == std::vector<float>{1, 2, 4, 8, 16});  // as if nothing were wrong
  }
  isolated_in_every_order([&] {
    const std::vector<float> got = run();
    CHECK(got[1] == 2);
    for (size_t i = 2; i < 5; ++i) CHECK(std::isnan(got[i]));
  });
}

template <bool fence> float last_block_sum() {
  const DeviceArray<float> parts(size_t{5} * 64);
  const auto sum = DeviceArray<float>::zeros(1);
  const auto arrived = DeviceArray<unsigned>::zeros(1);
  launch({5, 64}, planted::LastBlockSums<fence>{parts.data(), sum.data(), arrived.data()});
  return sum.host()[0];
}

TEST_CASE("a missing fence before the last block sums up") {
  CHECK(last_block_sum<false>() == 5 * 64 * 65 / 2);
  isolated_in_every_order([] {
    CHECK(std::isnan(last_block_sum<false>()));
    CHECK(last_block_sum<true>() == 5 * 64 * 65 / 2);
  });
}

TEST_CASE("allowed for blocks: atomics, locks with fences, neighbouring bytes") {
  isolated_in_every_order([] {
    const auto total = DeviceArray<int>::zeros(1), cells = DeviceArray<int>::zeros(2);
    launch({dim3(3, 3), 32}, Count<true>{total.data()});
    CHECK(total.host()[0] == 45);
    launch({7, 32}, Lock{cells.data(), cells.data() + 1});
    CHECK(cells.host() == std::vector<int>{0, 7});
    const auto bytes = DeviceArray<unsigned char>(std::vector<unsigned char>(128, 9));
    launch({4, 32}, Interleaved{bytes.data()});
    const std::vector<unsigned char> got = bytes.host();
    for (size_t i = 0; i < 128; ++i) CHECK(got[i] == i % 4);
  });
}
