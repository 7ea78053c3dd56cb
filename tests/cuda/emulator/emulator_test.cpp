// Fibers by themselves, and the emulator against the definition of each primitive, in each order of threads.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "cuda/emulator/fiber.h"
#include "cuda/emulator/queue.h"
#include "tests/cuda/emulator/emulator_fixture.h"

namespace {

using Order = emu::Options::Order;
constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::random};

// One value per thread of a block of `threads`; calls f(thread).
template <class T, class F> struct PerThread {
  T* out;
  F f;
  __device__ void operator()() const { out[blockIdx.x * blockDim.x + threadIdx.x] = f(threadIdx.x); }
};

template <class F> auto per_thread(unsigned threads, F f) {
  using T = decltype(f(0u));
  const DeviceArray<T> out(threads);
  launch({1, threads}, PerThread<T, F>{out.data(), f});
  return out.host();
}

// Compares with expected(lane) for two warps.
template <class F, class G> void check_lanes(F f, G expected) {
  WithOptions options;
  for (Order order : kOrders) {
    options->order = order;
    const auto got = per_thread(64, f);
    for (unsigned t = 0; t < 64; ++t) {
      CAPTURE(t);
      CHECK(got[t] == expected(t));
    }
  }
}

}  // namespace

TEST_CASE("shuffle: every kind and width") {
  for (unsigned width : {1u, 2u, 4u, 8u, 16u, 32u})
    for (unsigned by : {0u, 1u, 3u, 5u, 9u, 17u, 31u}) {
      INFO("width ", width, ", by ", by);
      const int w = static_cast<int>(width);
      const auto value = [](unsigned t) { return t * 3 + 1; };
      check_lanes([=](unsigned t) { return __shfl_sync(~0u, value(t), static_cast<int>(by + t), w); },
          [=](unsigned t) { return value(t / width * width + (t + by) % width); });
      check_lanes([=](unsigned t) { return __shfl_up_sync(~0u, value(t), by, w); },
          [=](unsigned t) { return value(t % width >= by ? t - by : t); });
      check_lanes([=](unsigned t) { return __shfl_down_sync(~0u, value(t), by, w); },
          [=](unsigned t) { return value(t % width + by < width ? t + by : t); });
      check_lanes([=](unsigned t) { return __shfl_xor_sync(~0u, value(t), static_cast<int>(by), w); },
          [=](unsigned t) {  // lanes of an earlier segment can be read, those of a later one not
            const unsigned other = t ^ by;
            return value(other / width <= t / width ? other : t);
          });
    }
}

TEST_CASE("shuffle: types") {
  check_lanes([](unsigned t) { return __shfl_xor_sync(~0u, 0.1 * t, 16); }, [](unsigned t) { return 0.1 * (t ^ 16); });
  check_lanes([](unsigned t) { return __shfl_sync(~0u, -1.5f * static_cast<float>(t), 31); },
      [](unsigned t) { return -1.5f * static_cast<float>(t / 32 * 32 + 31); });
  check_lanes([](unsigned t) { return __shfl_down_sync(~0u, -(int64_t{1} << 40) - t, 1); },
      [](unsigned t) { return -(int64_t{1} << 40) - (t % 32 == 31 ? t : t + 1); });
  check_lanes(
      [](unsigned t) { return __shfl_sync(~0u, static_cast<short>(t), 2); }, [](unsigned t) { return static_cast<int>(t / 32 * 32 + 2); });
}

TEST_CASE("collectives of some lanes: halves in different numbers of rounds, odd and even lanes, overlapping pairs") {
  check_lanes(
      [](unsigned t) {
        const unsigned lane = t % 32, half = lane < 16 ? 0xffffu : 0xffff0000u;
        int sum = static_cast<int>(lane);
        for (int round = 0; round < (lane < 16 ? 2 : 4); ++round) sum += __shfl_xor_sync(half, sum, 1 << round);
        const unsigned mask = lane % 2 ? 0xaaaaaaaau : 0x55555555u;
        for (int by = 2; by < 32; by *= 2) sum += __shfl_xor_sync(mask, sum, by);
        return sum;
      },
      [](unsigned t) {
        int sums[32], next[32];
        for (int l = 0; l < 32; ++l) sums[l] = l;
        for (int round = 0; round < 4; ++round) {
          for (int l = 0; l < 32; ++l) next[l] = round < (l < 16 ? 2 : 4) ? sums[l] + sums[l ^ 1 << round] : sums[l];
          std::copy(next, next + 32, sums);
        }
        int odd = 0, even = 0;
        for (int l = 0; l < 32; ++l) (l % 2 ? odd : even) += sums[l];
        return t % 2 ? odd : even;
      });
}

TEST_CASE("bits, and matches, because they compare bits") {
  check_lanes(
      [](unsigned t) { return __match_any_sync(~0u, t % 2 ? 0.0f : -0.0f); }, [](unsigned t) { return t % 2 ? 0xaaaaaaaau : 0x55555555u; });
  CHECK(per_thread(1, [](unsigned) { return __popc(0xf0f0u); })[0] == 8);
  CHECK(per_thread(1, [](unsigned) { return __umulhi(0xdeadbeefu, 0xcafef00du); })[0] == (0xdeadbeefull * 0xcafef00du) >> 32);
  CHECK(per_thread(1, [](unsigned) { return __float_as_uint(-2.0f); })[0] == 0xc0000000u);
  CHECK(per_thread(1, [](unsigned) { return __uint_as_float(0x3f800000u); })[0] == 1);
}

// ---- Fibers: the values that a switch keeps, and the kind of switch in this program

namespace {

using emu::Fiber;

Fiber main_fiber, fibers[3];
int turns[3];
double results[3];
bool aligned[3];
char ended[3];  // to ThreadSanitizer, switches order nothing

// Holds more live values than there are registers across each switch to the next fiber.
template <int which> void entry() {
  Fiber::begin(main_fiber);
  alignas(16) volatile char on_stack[16] = {};
  aligned[which] = reinterpret_cast<uintptr_t>(on_stack) % 16 == 0;
  double values[24];
  for (int i = 0; i < 24; ++i) values[i] = which * 100 + i;
  for (; turns[which] < 1000; ++turns[which]) {
    for (double& value : values) value += 1;
    Fiber::switch_to(fibers[which], which == 2 ? main_fiber : fibers[which + 1]);
  }
  for (double value : values) results[which] += value;
  emu::order_release(&ended[which]);
  Fiber::leave(fibers[which], main_fiber);
}

}  // namespace

TEST_CASE("three fibers in turn keep their values, on stacks that are aligned") {
  emu::Stacks stacks;
  main_fiber.adopt();
  void (*const entries[])() = {&entry<0>, &entry<1>, &entry<2>};
  for (int i = 0; i < 3; ++i) turns[i] = 0, results[i] = 0, fibers[i].prepare(stacks.take(), entries[i]);
  for (int round = 0; round < 1000; ++round) Fiber::switch_to(main_fiber, fibers[0]);
  for (Fiber& fiber : fibers) Fiber::switch_to(main_fiber, fiber);  // to the end of each
  for (int i = 0; i < 3; ++i) {
    emu::order_acquire(&ended[i]);
    CHECK(turns[i] == 1000);
    CHECK(results[i] == 24 * (i * 100 + 1000) + 23 * 24 / 2);
    CHECK(aligned[i]);
  }
}

TEST_CASE("stacks are reused, and below each lies a page without access") {
  emu::Stacks stacks;
  const emu::Stack first = stacks.take(), second = stacks.take();
  CHECK(first.bottom != second.bottom);
  CHECK(first.bytes >= 64 * 1024);
  stacks.give_back(first);
  CHECK(stacks.take().bottom == first.bottom);
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  CHECK(write(pipe_ends[1], second.bottom, 1) == 1);
  CHECK(write(pipe_ends[1], second.bottom - 1, 1) == -1);  // the operating system cannot read it either
  close(pipe_ends[0]), close(pipe_ends[1]);
}

// ---- Lazy work: without a wait the old values are found

namespace {

struct Fill {
  float* x;
  double value;  // a float would leave padding, where chance values can look like a pointer
  __device__ void operator()() const { x[threadIdx.x] = static_cast<float>(value); }
};

struct Add {
  const float *a, *b;
  float* sum;
  __device__ void operator()() const { sum[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
};

template <class Kernel> void launch_later(const Kernel& kernel, const char* name = "kernel") {
  const emu::Launch config{name, 1, 32, 0, {"caller.cu", 12}};
  emu::launch(
      config, [](const void* k) { (*static_cast<const Kernel*>(k))(); }, &kernel, sizeof kernel);
}

float first(const DeviceArray<float>& x) { return x.host()[0]; }

}  // namespace

TEST_CASE("lazy work runs when it is waited for, in order") {
  WithOptions options;
  options->lazy = true;
  const DeviceArray<float> x(32), y(32);
  launch_later(Fill{x.data(), 1});
  launch_later(Add{x.data(), x.data(), y.data()});
  launch_later(Fill{x.data(), 5});
  CHECK(std::isnan(first(x)));  // a host that does not wait
  CHECK(std::isnan(first(y)));
  emu::synchronize();
  CHECK(first(x) == 5);
  CHECK(first(y) == 2);
}

#ifndef __SANITIZE_ADDRESS__  // it stops the program at these: see planted.cpp
TEST_CASE("memory that is used after its release") {
  WithOptions options;
  options->lazy = true;
  const DeviceArray<float> y(32);
  auto* x = static_cast<float*>(emu::allocate(128));
  launch_later(Fill{x, 1});
  emu::release_in_order(x);
  launch_later(Add{x, x, y.data()});
  emu::synchronize();
  CHECK(std::isnan(first(y)));
  x = static_cast<float*>(emu::allocate(128));
  emu::release_in_order(x);
  launch_later(Fill{x, 1});
  CHECK(error_of([&] { emu::synchronize(); }) == "emulator: device memory of 128 bytes was written after its release, at byte 0");
}
#endif

TEST_CASE("errors appear at the wait, once, and later work still runs") {
  struct Stops {
    __device__ void operator()() const {
      if (threadIdx.x == 5) __trap();
    }
  };
  WithOptions options;
  options->lazy = true;
  const DeviceArray<float> x(32);
  {
    const std::string name = "made_up";  // need not outlive the launch
    launch_later(Stops{}, name.c_str());
  }
  launch_later(Fill{x.data(), 4});
  const std::string error = error_of([&] { emu::synchronize(); });
  CHECK(contains(error, "made_up: thread 5 of block 0: __trap at "));
  CHECK(contains(error, "(launched at caller.cu:12)"));
  CHECK(first(x) == 4);
  CHECK(error_of([&] { emu::synchronize(); }).empty());
  const emu::Launch empty{"empty", 0, 32, 0, {"caller.cu", 12}};
  CHECK(contains(error_of([&] {
    emu::launch(
        empty, [](const void*) {}, &x, sizeof(int));
  }),
      "empty: grid size is 0 x 1 x 1"));  // together with the call
}
