// Mistakes in kernels and launches: each is noticed, and the message names the mistake, the source line and the thread.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cmath>

#include "core/dtype.h"
#include "cuda/ptx.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/cuda/emulator/planted_bugs.h"

namespace {

using Order = emu::Options::Order;
using planted::at;

// The error of a launch. It must be one line, and a good launch must work after it.
template <class Kernel> std::string launch_error(const LaunchShape& shape, const Kernel& kernel, int workers = 1) {
  WithOptions options;
  options->workers = workers, options->max_polls = 1000;
  const std::string error = error_of([&] { launch(shape, kernel, {"caller.cu", 12}); });
  CHECK(!contains(error, "\n"));
  CHECK(contains(error, "(launched at caller.cu:12)"));
  const DeviceArray<int> y(128);
  struct Good {
    int* y;
    __device__ void operator()() const {
      __syncthreads();
      y[blockIdx.x * blockDim.x + threadIdx.x] = 64;
    }
  };
  launch({2, 64}, Good{y.data()});
  CHECK(y.host() == std::vector<int>(128, 64));
  return error;
}

void check_contains(const std::string& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    INFO("error ", error, ", part ", part);
    CHECK(contains(error, part));
  }
}

}  // namespace

TEST_CASE("divergent barriers") {
  const DeviceArray<float> x(128);
  check_contains(launch_error({1, 128}, planted::DivergentBarrier{x.data()}),
      {"kernel: thread 64 of block 0: returned while others wait for it at a barrier: ",
          "threads 0-63 at __syncthreads " + at(planted::DivergentBarrier::kLine), "threads 64-127 elsewhere"});
  check_contains(launch_error({1, 128}, planted::BarrierAfterReturn{x.data(), 100}),
      {"kernel: thread 100 of block 0: returned while others wait for it at a barrier: ",
          "threads 0-99 at __syncthreads " + at(planted::BarrierAfterReturn::kLine)});
  check_contains(launch_error({1, 64}, planted::DifferentBarriers{x.data()}),
      {"kernel: block 0: divergent __syncthreads (the threads of the block wait at different barriers): ",
          "threads 1, 3, 5, 7, 9, 11, ... at __syncthreads " + at(planted::DifferentBarriers::kOdd),
          "threads 0, 2, 4, 6, 8, 10, ... at __syncthreads " + at(planted::DifferentBarriers::kEven)});
}

TEST_CASE("an early return before the barrier, in the order that lets it return first") {
  WithOptions options;
  options->order = Order::reverse;
  const DeviceArray<float> x(128);
  const auto run = [&] { launch({1, 128}, planted::BarrierAfterReturn{x.data(), 100}); };
  check_contains(error_of(run),
      {"block 0: __syncthreads at " + at(planted::BarrierAfterReturn::kLine) + " after other threads of the block have returned: ",
          "threads 100-127 returned"});
}

TEST_CASE("warp collectives that not all lanes reach") {
  const DeviceArray<float> x(std::vector<float>(96, 1.0f));
  using Bug = planted::ShuffleSomeNeverReach;
  check_contains(launch_error({1, 64}, Bug{x.data()}), {"kernel: block 0: deadlock (no thread of the block can continue): ",
                                                           "threads 0-15 at __shfl_xor_sync " + at(Bug::kShuffle) + " with mask 0xffffffff",
                                                           "threads 16-63 at __syncthreads " + at(Bug::kBarrier)});
  check_contains(launch_error({1, 32}, planted::ShuffleInUnevenLoop{x.data(), 80}),
      {"the lanes of one mask wait at different warp collectives: ", "threads 0-15 at __shfl_xor_sync", "threads 16-31 at __syncwarp"});
  check_contains(launch_error({1, 32}, planted::ReturnBeforeShuffle{x.data()}),
      {"kernel: thread 7 of block 0: returned while others wait for it at a warp collective: threads 0-6 at __shfl_xor_sync " +
          at(planted::ReturnBeforeShuffle::kLine)});
  // A block with a partial warp.
  check_contains(launch_error({1, 40}, planted::ShuffleWidth{nullptr}), {"width is 12, expected 1, 2, 4, 8, 16 or 32"});
  check_contains(launch_error({1, 24}, planted::ReturnBeforeShuffle{x.data()}), {"lanes 0xff000000 returned or never existed"});
}

TEST_CASE("shuffles that read from lanes outside") {
  const DeviceArray<int> x(32);
  check_contains(launch_error({1, 32}, planted::ShuffleFromOutside{x.data()}), {"lane 0 reads lane 20, but that lane does not take part"});
  check_contains(launch_error({1, 32}, planted::ShuffleOutsideMask{x.data()}),
      {"thread 0 of block 0: __shfl_sync at ", "with mask 0xfffffffe: the calling lane 0 is not in the mask"});
}

#ifndef __SANITIZE_THREAD__  // it reports these as data races and fails the program: see planted.cpp
TEST_CASE("missing barriers show as NaN or as results that depend on the order") {
  WithOptions options;
  const DeviceArray<float> y(64);
  launch({1, 64}, planted::MissingBarrier{y.data()});
  CHECK(std::isnan(y.host()[0]));
  launch({1, 32}, planted::MissingWarpBarrier{y.data()});
  CHECK(std::isnan(y.host()[0]));
  launch({1, 64}, planted::MissingBarrierOrder{y.data()});
  const float forward = y.host()[0];
  options->order = Order::reverse;
  launch({1, 64}, planted::MissingBarrierOrder{y.data()});
  CHECK(forward == 63.0f);
  CHECK(y.host()[0] == 0.0f);
}
#endif

TEST_CASE("shared memory that was never written is NaN, in every block") {
  const DeviceArray<float> y(96);
  launch({3, 32}, planted::UninitialisedShared{y.data()});
  for (float value : y.host()) CHECK(std::isnan(value));
}

#ifndef __SANITIZE_ADDRESS__  // it stops the program at these: see planted.cpp
TEST_CASE("writes past the end") {
  check_contains(launch_error({1, 64}, planted::StaticSharedOverrun{64}),
      {"kernel: thread 3 of block 0: tile of 256 bytes was written out of bounds, at byte 256"});
  check_contains(launch_error({1, 64, 252}, planted::DynamicSharedOverrun{70}),
      {"kernel: thread 3 of block 0: dynamic shared memory of 252 bytes was written out of bounds, at byte 280"});
  const DeviceArray<float> x(63), y(1);
  check_contains(launch_error({2, 64}, planted::DeviceOverrun{x.data(), 63}),
      {"kernel: thread 3 of block 1: device memory was written out of bounds, at byte 252 of an allocation of 252 bytes"});
  check_contains(launch_error({2, 64}, planted::DeviceOverrun{x.data(), -1}, 3),
      {"kernel: thread 3 of block 1: ", "at byte -4 of an allocation of 252 bytes"});
}

template <class T> void check_read_past_the_end() {
  const auto x = DeviceArray<T>(std::vector<T>(3, T(1))), y = DeviceArray<T>(3);
  launch({1, 1}, planted::ReadPastTheEnd<T>{x.data(), y.data(), 3});
  for (T value : y.host()) CHECK(std::isnan(static_cast<double>(value)));
}

TEST_CASE("reads past the end are NaN, in every type") {
  check_read_past_the_end<float>();
  check_read_past_the_end<double>();
  check_read_past_the_end<ricci::bf16>();
}
#endif

TEST_CASE("waiting for something that never happens") {
  const auto flag = DeviceArray<int>::zeros(1);
  check_contains(launch_error({1, 64}, planted::SpinOnFlag{flag.data()}),
      {"kernel: block 0: threads wait in a loop for a change that no other thread makes: ",
          "threads 0-4 in a loop with __nanosleep or atomicCAS", "threads 5-63 returned"});
  check_contains(launch_error({1, 32}, planted::SpinOnLock{flag.data()}),
      {"threads wait in a loop", "thread 0 returned", "threads 1-31 in a loop with __nanosleep or atomicCAS"});
}

TEST_CASE("a trap, named by its thread in three dimensions") {
  check_contains(launch_error({dim3(1, 2), dim3(4, 4)}, planted::Trap{}),
      {"kernel: thread (1, 2, 0) of block (0, 0, 0): __trap at " + at(planted::Trap::kLine)});
}

TEST_CASE("one failing block ends a launch on multiple workers") {
  check_contains(launch_error({40, dim3(4, 4)}, planted::Trap{}, 3), {"thread (1, 2, 0) of block "});
}

TEST_CASE("launches that cannot run") {
  using Kernel = planted::Trap;
  check_contains(launch_error({1, 1025}, Kernel{}), {"kernel: block size is 1025 x 1 x 1, expected 1 to 1024 threads"});
  check_contains(launch_error({1, dim3(32, 33)}, Kernel{}), {"kernel: block size is 32 x 33 x 1"});
  check_contains(launch_error({1, 0}, Kernel{}), {"kernel: block size is 0 x 1 x 1"});
  check_contains(launch_error({1, dim3(1, 1, 65)}, Kernel{}), {"kernel: block size is 1 x 1 x 65"});
  check_contains(launch_error({dim3(1, 0), 32}, Kernel{}), {"kernel: grid size is 1 x 0 x 1"});
  check_contains(launch_error({dim3(1, 65536), 32}, Kernel{}), {"kernel: grid size is 1 x 65536 x 1"});
  check_contains(
      launch_error({1, 32, 227 * 1024 + 1}, Kernel{}), {"kernel: asks for 232449 bytes of dynamic shared memory, expected at most 232448"});
  check_contains(launch_error({1, 32}, planted::TooMuchStaticShared{}),
      {"huge of 65536 bytes does not fit: at most 48 KiB of shared memory can be static, 227 KiB in all"});
}

// Sanitizers map so much memory that many numbers are addresses.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && __has_builtin(__builtin_clear_padding)
TEST_CASE("a pointer to memory of the CPU as an argument") {
  struct Store {
    int64_t n;
    float* y;
    __device__ void operator()() const {
      if (threadIdx.x < n) y[threadIdx.x] = 1;
    }
  };
  const auto start = [](const Store& store) {
    emu::launch(
        {"kernel", 1, 32, 0, {"caller.cu", 12}}, [](const void* k) { (*static_cast<const Store*>(k))(); }, &store, sizeof store);
  };
  const DeviceArray<float> x(32);
  std::vector<float> host(32);
  const std::string error =
      "kernel: the argument at byte 8 of 16 is a pointer to CPU memory, expected device memory (launched at caller.cu:12)";
  CHECK(error_of([&] { start({32, host.data()}); }) == error);
  float on_stack = 0;
  CHECK(error_of([&] { start({1, &on_stack}); }) == error);
  for (int64_t n : {int64_t{1}, int64_t{1} << 40, (int64_t{768} << 32) + 1024, int64_t{-1}}) start({n, x.data()});
  start({0, nullptr});
  start({0, x.data() + 32});                                                                                  // one past the end
  void* const reserved = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);  // as drivers of GPUs do
  start({0, static_cast<float*>(reserved)});
  munmap(reserved, 4096);
}
#endif

TEST_CASE("wrong pointers to device memory") {
  float host = 0;
  CHECK(error_of([&] { emu::release(&host); }) == "emulator: the released pointer is not a device allocation");
  void* x = emu::allocate(100);
  CHECK(contains(error_of([&] { emu::release(static_cast<char*>(x) + 4); }), "the released pointer is not"));
  CHECK(error_of([&] { emu::copy_in(x, &host, 101); }) ==
        "emulator: copy to device: 101 bytes at offset 0 exceed a device allocation of 100 bytes");
  CHECK(error_of([&] { emu::copy_out(&host, static_cast<char*>(x) + 98, 4); }) ==
        "emulator: copy to host: 4 bytes at offset 98 exceed a device allocation of 100 bytes");
  CHECK(contains(error_of([&] { emu::copy_within(x, &host, 4); }), "copy on the device, source: the pointer is not in device memory"));
  CHECK(contains(error_of([&] { emu::fill_zero(&host, 4); }), "fill: the pointer is not in device memory"));
  emu::release(x);
  CHECK(contains(error_of([&] { emu::release(x); }), "the released pointer is not"));
  CHECK(contains(error_of([] { emu::allocate(~size_t{0}); }), "no memory for a device allocation of 18446744073709551615 bytes"));
}

// ---- Mistakes with the wrapped instructions: asynchronous copies without a wait, wrong addresses, lanes left out

namespace {

namespace ptx = ricci::ptx;

// y[i] = x[31 - i] through shared memory, with one mistake.
enum class Mistake { none, no_wait, no_commit, wait_for_too_few, no_barrier, never_waits };
template <Mistake mistake> struct Copy {
  static constexpr int kLine = __LINE__ + 5;  // the line of the copy
  const float* x;
  float* y;
  __device__ void operator()() const {
    SHARED(float, tile, [64]);
    ptx::cp_async<4>(&tile[threadIdx.x], x + threadIdx.x);
    if (mistake != Mistake::no_commit) ptx::cp_async_commit();
    if (mistake == Mistake::wait_for_too_few) ptx::cp_async_wait<1>();
    if (mistake == Mistake::none || mistake == Mistake::no_barrier || mistake == Mistake::no_commit) ptx::cp_async_wait<0>();
    if (mistake != Mistake::no_barrier) __syncthreads();
    y[threadIdx.x] = tile[63 - threadIdx.x];
    __syncthreads();
    if (mistake != Mistake::never_waits) ptx::cp_async_wait_all();
  }
};

template <Mistake mistake> int count_nans(Order order) {
  WithOptions options;
  options->order = order;
  std::vector<float> host(64);
  for (size_t i = 0; i < 64; ++i) host[i] = static_cast<float>(i);
  const DeviceArray<float> x(host), y(64);
  launch({1, 64}, Copy<mistake>{x.data(), y.data()});
  int nans = 0;
  const std::vector<float> got = y.host();
  for (size_t i = 0; i < 64; ++i) {
    nans += std::isnan(got[i]);
    CHECK((std::isnan(got[i]) || got[i] == static_cast<float>(63 - i)));
  }
  return nans;
}

// Each thread copies to its part of two tiles that hold 7, in two groups, and waits for the first.
struct TwoGroups {
  const float* x;
  float* y;
  __device__ void operator()() const {
    SHARED(float, tiles, [2][32]);
    tiles[0][threadIdx.x] = tiles[1][threadIdx.x] = 7;
    for (auto& tile : tiles) {
      ptx::cp_async<4>(&tile[threadIdx.x], x + threadIdx.x);
      ptx::cp_async_commit();
    }
    ptx::cp_async_wait<1>();
    y[threadIdx.x] = tiles[0][threadIdx.x], y[32 + threadIdx.x] = tiles[1][threadIdx.x];
    ptx::cp_async_wait_all();
  }
};

template <class F> struct Call {
  F f;
  __device__ void operator()() const { f(threadIdx.x); }
};

// The error of a warp that calls f(lane).
template <class F> std::string error_in_kernel(F f) {
  WithOptions options;
  return error_of([&] { launch({1, 32}, Call<F>{f}, {"caller.cu", 12}); });
}

void check_error(const std::string& error, const std::string& thread, const std::string& what) {
  INFO("error ", error, ", what ", what);
  CHECK(contains(error, "kernel: " + thread + ": "));
  CHECK(contains(error, what));
  CHECK(contains(error, "(launched at caller.cu:12)"));
}

}  // namespace

TEST_CASE("a copy that is not waited for has not arrived") {
  for (Order order : {Order::forward, Order::reverse, Order::random}) {
    CHECK(count_nans<Mistake::none>(order) == 0);
    CHECK(count_nans<Mistake::no_wait>(order) == 64);
    CHECK(count_nans<Mistake::no_commit>(order) == 64);
    CHECK(count_nans<Mistake::wait_for_too_few>(order) == 64);
  }
}

TEST_CASE("a wait for the first of two groups only brings that group; the old values at the target of the other are gone") {
  WithOptions options;
  const DeviceArray<float> x(std::vector<float>(32, 3)), y(64);
  launch({1, 32}, TwoGroups{x.data(), y.data()});
  const std::vector<float> got = y.host();
  for (size_t i = 0; i < 32; ++i) {
    CHECK(got[i] == 3);
    CHECK(std::isnan(got[32 + i]));
  }
}

#ifndef __SANITIZE_THREAD__  // it reports a data race and fails the program: see planted.cpp
TEST_CASE("a thread's wait is not another thread's") {
  for (Order order : {Order::forward, Order::reverse, Order::random}) CHECK(count_nans<Mistake::no_barrier>(order) > 0);
}
#endif

TEST_CASE("a kernel that ends before its copies have arrived") {
  WithOptions options;
  const auto x = DeviceArray<float>::zeros(64), y = DeviceArray<float>::zeros(64);
  using Kernel = Copy<Mistake::never_waits>;
  const std::string error = error_of([&] { launch({1, 64}, Kernel{x.data(), y.data()}); });
  CAPTURE(error);
  CHECK(contains(
      error, " of block 0: returned without waiting for the cp_async at " + std::string(__FILE__) + ":" + std::to_string(Kernel::kLine)));
}

TEST_CASE("addresses that the hardware refuses, or takes for another") {
  const auto x = DeviceArray<uint32_t>::zeros(132);
  uint32_t* p = x.data();
  check_error(error_in_kernel([=](unsigned lane) { ptx::load16(p + lane); }), "thread 1 of block 0",
      "the address is 4 bytes beyond a multiple of 16");
  check_error(error_in_kernel([=](unsigned lane) { ptx::store16(p + 4 * lane + (lane == 9 ? 2 : 0), uint4{}); }), "thread 9 of block 0",
      "store16 at tests/cuda/emulator/emulator_bugs_test.cpp:");
  check_error(error_in_kernel([](unsigned) {
    SHARED(uint4, tile, [1]);
    ptx::store16_whole(tile, uint4{});
  }),
      "thread 0 of block 0", "the address is in shared memory");
  check_error(error_in_kernel([=](unsigned lane) { ptx::cp_async<4>(p + lane, p); }), "thread 0 of block 0",
      "cp_async, destination at tests/cuda/emulator/emulator_bugs_test.cpp:");
}

TEST_CASE("addresses that instructions for shared memory refuse") {
  const auto x = DeviceArray<uint32_t>::zeros(132);
  uint32_t* p = x.data();
  check_error(error_in_kernel([=](unsigned lane) {
    SHARED(uint32_t, tile, [32]);
    ptx::cp_async<8>(&tile[lane % 31], p);
    ptx::cp_async_wait_all();
  }),
      "thread 1 of block 0", "the address is 4 bytes beyond a multiple of 8");
  check_error(error_in_kernel([=](unsigned lane) {
    SHARED(uint32_t, tile, [31]);
    ptx::cp_async<4>(&tile[lane], p);
    ptx::cp_async_wait_all();
  }),
      "thread 31 of block 0", "the address is not in shared memory");
  check_error(error_in_kernel([=](unsigned lane) {
    SHARED(uint4, tile, [32]);

    ptx::cp_async<16>(&tile[lane], p + 100 + 4 * lane, lane < 9 ? 16 : 0);
    ptx::cp_async_wait_all();
  }),
      "thread 8 of block 0", "cp_async, source at tests/cuda/emulator/emulator_bugs_test.cpp:");
  check_error(error_in_kernel([=](unsigned) {
    SHARED(uint4, tile, [32]);
    ptx::cp_async<16>(&tile[0], p, 17);
  }),
      "thread 0 of block 0", "17 bytes of the source, expected 0 to 16");
  check_error(error_in_kernel([=](unsigned) {
    uint32_t r[1];
    ptx::ldmatrix<1>(r, p);
  }),
      "thread 0 of block 0", "ldmatrix<1> at tests/cuda/emulator/emulator_bugs_test.cpp:");
  check_error(error_in_kernel([=](unsigned lane) {
    SHARED(uint4, tile, [32]);
    uint32_t r[2];
    ptx::ldmatrix_trans<2>(r, reinterpret_cast<const char*>(&tile[lane]) + (lane == 15 ? 8 : 0));
  }),
      "thread 15 of block 0", "the address is 8 bytes beyond a multiple of 16");
}

TEST_CASE("warp-wide instructions that not all lanes reach") {
  const auto multiply = [](unsigned lane) {
    float c[4] = {};
    const uint32_t a[4] = {}, b[2] = {};
    if (lane < 20) ptx::mma_bf16(c, a, b);
    __syncthreads();
  };
  check_error(error_in_kernel(multiply), "block 0", "threads 0-19 at mma_bf16 tests/cuda/emulator/emulator_bugs_test.cpp:");
  const auto mixed = [](unsigned lane) {
    SHARED(uint4, tile, [32]);
    uint32_t r[1];
    if (lane < 8) ptx::ldmatrix<1>(r, &tile[lane]);
    else ptx::ldmatrix_trans<1>(r, &tile[lane]);
  };
  check_error(error_in_kernel(mixed), "block 0", "the lanes of one mask wait at different warp collectives: ");
}

TEST_CASE("warp-wide instructions that lanes reach from two lines") {
  WithOptions options;
  using Multiply = planted::WarpInstructionFromTwoLines<false>;
  check_error(error_of([] {
    launch({1, 32}, Multiply{}, {"caller.cu", 12});
  }),
      "block 0", "divergent mma_bf16 (the lanes of the warp wait at different lines): ");
  using Load = planted::WarpInstructionFromTwoLines<true>;
  for (Order order : {Order::forward, Order::reverse, Order::random}) {
    options->order = order;
    const std::string multiply = error_of([] { launch({1, 32}, Multiply{}, {"caller.cu", 12}); });
    check_error(multiply, "block 0", "threads 1, 3, 5, 7, 9, 11, ... at mma_bf16 " + planted::at(Multiply::kOdd));
    check_error(multiply, "block 0", "threads 0, 2, 4, 6, 8, 10, ... at mma_bf16 " + planted::at(Multiply::kEven));
    const std::string load = error_of([] { launch({1, 32}, Load{}, {"caller.cu", 12}); });
    check_error(load, "block 0", "threads 1, 3, 5, 7, 9, 11, ... at ldmatrix<1> " + planted::at(Load::kLoadOdd));
    check_error(load, "block 0", "threads 0, 2, 4, 6, 8, 10, ... at ldmatrix<1> " + planted::at(Load::kLoadEven));
  }
}
