// Streams of the emulator: what forgets to wait finds what was there before, in each order; and what is right is right in all.
#include <doctest/doctest.h>

#include <cmath>

#include "cuda/emulator/streams.h"
#include "tests/cuda/emulator/emulator_fixture.h"

namespace {

using Order = emu::Options::Order;
constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::random};

struct Fill {
  float* x;
  float value;
  __device__ void operator()() const { x[threadIdx.x] = value; }
};

struct Add {
  const float *a, *b;
  float* sum;
  __device__ void operator()() const { sum[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
};

template <class Kernel> void launch_on(emu::Stream& stream, const Kernel& kernel, const char* name = "kernel") {
  emu::use_stream(&stream);
  const emu::Launch config{name, 1, 32, 0, {"caller.cu", 12}};
  emu::launch(
      config, [](const void* k) { (*static_cast<const Kernel*>(k))(); }, &kernel, sizeof kernel);
  emu::use_stream(nullptr);
}

float first(const DeviceArray<float>& x) { return x.host()[0]; }

template <class F> void in_every_order(F f) {
  WithOptions options;
  for (Order order : kOrders)
    for (uint64_t seed = 1; seed <= (order == Order::random ? 8 : 1); ++seed) {
      options->order = order, options->seed = seed;
      f(order);
    }
}

}  // namespace

TEST_CASE("work of a stream runs when it is waited for, in order") {
  in_every_order([](Order) {
    const DeviceArray<float> x(32), y(32);
    emu::Stream stream;
    launch_on(stream, Fill{x.data(), 1});
    launch_on(stream, Add{x.data(), x.data(), y.data()});
    launch_on(stream, Fill{x.data(), 5});
    CHECK(std::isnan(first(x)));  // a host that does not wait
    CHECK(std::isnan(first(y)));
    emu::synchronize(stream);
    CHECK(first(x) == 5);
    CHECK(first(y) == 2);
  });
}

TEST_CASE("a wait for the wrong stream") {
  in_every_order([](Order order) {
    const DeviceArray<float> x(32), y(32);
    emu::Stream one, other;
    launch_on(one, Fill{x.data(), 1});
    launch_on(other, Fill{y.data(), 2});
    emu::synchronize(other);
    CHECK(first(y) == 2);
    if (order == Order::forward) CHECK(std::isnan(first(x)));
    emu::synchronize();
    CHECK(first(x) == 1);
  });
}

// One stream makes x, the other makes y of it; then the first changes x. The values of y follow, with and without each of the waits.
std::vector<float> produced(bool wait_to_read, bool wait_to_write) {
  std::vector<float> results;
  in_every_order([&](Order) {
    const DeviceArray<float> x(32), y(32);
    emu::Stream producer, consumer;
    launch_on(producer, Fill{x.data(), 1});
    if (wait_to_read) emu::wait_for(consumer, producer);
    launch_on(consumer, Add{x.data(), x.data(), y.data()});
    if (wait_to_write) emu::wait_for(producer, consumer);
    launch_on(producer, Fill{x.data(), 5});
    emu::synchronize(consumer);
    results.push_back(first(y));
    emu::synchronize();
    CHECK(first(x) == 5);
  });
  return results;
}

TEST_CASE("a missing wait before a read, and before what was read is changed") {
  int right = 0, nans = 0, changed = 0;
  const auto count = [&](const std::vector<float>& results) {
    right = nans = changed = 0;
    for (float y : results) right += y == 2, nans += std::isnan(y), changed += y == 10;
    CHECK(right + nans + changed == 10);
  };
  count(produced(true, true));
  CHECK(right == 10);
  count(produced(false, false));
  CHECK(nans > 0);
  count(produced(false, true));
  CHECK(nans > 0);
  CHECK(changed == 0);
  const std::vector<float> too_early = produced(true, false);
  CHECK(too_early[0] == 2);   // forward: what is not waited for has not run
  CHECK(too_early[1] == 10);  // reverse: it all has
  count(too_early);
  CHECK(nans == 0);
  CHECK(changed > 0);
  CHECK(right > 0);
}

TEST_CASE("the main stream waits for a side stream, and runs at once unless told otherwise") {
  in_every_order([](Order) {
    for (bool lazy : {false, true}) {
      emu::options().lazy = lazy;
      const DeviceArray<float> x(32), y(32);
      emu::Stream side;
      launch_on(emu::main_stream(), Fill{x.data(), 3});
      CHECK((lazy ? std::isnan(first(x)) : first(x) == 3));
      emu::wait_for(side, emu::main_stream());
      launch_on(side, Add{x.data(), x.data(), y.data()});
      emu::wait_for(emu::main_stream(), side);
      launch_on(emu::main_stream(), Add{y.data(), y.data(), x.data()});
      emu::synchronize(emu::main_stream());
      CHECK(first(x) == 12);
    }
    emu::options().lazy = false;
  });
}

#ifndef __SANITIZE_ADDRESS__  // which stops the program at these: see planted.cpp
TEST_CASE("memory released while another stream still uses it") {
  in_every_order([](Order order) {
    const DeviceArray<float> y(32);
    auto* x = static_cast<float*>(emu::allocate(128));
    emu::Stream side;
    const Fill fill{x, 1};
    launch_on(emu::main_stream(), fill);
    launch_on(side, Add{x, x, y.data()});
    emu::release_in_order(x);  // on the main stream, which has not waited
    emu::synchronize(side);
    if (order == Order::forward) CHECK(std::isnan(first(y)));
  });
  auto* x = static_cast<float*>(emu::allocate(128));
  emu::Stream side;
  launch_on(side, Fill{x, 1});
  emu::release_in_order(x);
  CHECK(error_of([&] { emu::synchronize(side); }) == "emulator: device memory of 128 bytes was written after its release, at byte 0");
}
#endif

TEST_CASE("errors appear where they are waited for, once, and what follows still runs") {
  struct Stops {
    __device__ void operator()() const {
      if (threadIdx.x == 5) __trap();
    }
  };
  const DeviceArray<float> x(32);
  emu::Stream stream;
  {
    const std::string name = "made_up";  // need not outlive the launch
    launch_on(stream, Stops{}, name.c_str());
  }
  launch_on(stream, Fill{x.data(), 4});
  const std::string error = error_of([&] { emu::synchronize(stream); });
  CHECK(contains(error, "made_up: thread 5 of block 0: __trap at "));
  CHECK(contains(error, "(launched at caller.cu:12)"));
  CHECK(first(x) == 4);
  CHECK(error_of([&] { emu::synchronize(); }).empty());
  emu::use_stream(&stream);
  const emu::Launch empty{"empty", 0, 32, 0, {"caller.cu", 12}};
  CHECK(contains(error_of([&] {
    emu::launch(
        empty, [](const void*) {}, &x, sizeof(int));
  }),
      "empty: grid size 0 x 1 x 1"));  // at once
  emu::use_stream(nullptr);
}

TEST_CASE("a stream that ends before its work has run") {
  const DeviceArray<float> x(32);
  {
    emu::Stream stream;
    launch_on(stream, Fill{x.data(), 6});
  }
  CHECK(std::isnan(first(x)));
  emu::synchronize();
  CHECK(first(x) == 6);
}
