// Products of warpgroups with one mistake each, and the wrong numbers or the message.
#include <doctest/doctest.h>

#include <cmath>

#include "cuda/ptx.h"
#include "tests/cuda/emulator/emulator_fixture.h"

namespace {

using Order = emu::Options::Order;
namespace ptx = ricci::ptx;
using ricci::bf16;

// copied and left_shared are no mistakes: b comes by cp.async, and a is in shared memory, as in all cases after left_shared.
// clang-format off
enum class Mistake {
  none, copied, no_proxy_fence, copied_without_proxy_fence, proxy_fence_before_the_copy, no_barrier, half_the_threads_fence, no_fence,
  fence_without_d, read_early, d_written_early, d_written_between, a_changed, b_overwritten, no_commit, wait_for_too_few, wait_without_d,
  two_lines, warp_left_out, warp_returns, other_descriptor_in_lane, other_descriptor_in_warp, no_swizzle, misplaced, beyond_the_end,
  left_shared, left_unseen, left_overwritten, left_without_fence, left_read_early, left_descriptor_in_lane, left_descriptor_in_warp,
  left_misplaced, left_no_swizzle, left_beyond_the_end
};
// clang-format on

// d [64][64] = 1 + b summed over k, with a = 1 everywhere. b [64 columns][64 k]; only k = 0 .. 15 take part.
constexpr int kRows = 64, kRow = 64, kBytes = kRows * kRow * 2;
__device__ void store_to(float* d, const float (&sum)[8][4]) {
  for (int i = 0; i < 32; ++i) d[threadIdx.x * 32 + static_cast<unsigned>(i)] = sum[i / 4][i % 4];
}
template <Mistake mistake> struct Multiply {
  const bf16* b;
  float* d;  // [threads][8][4]

  __device__ static bf16* tile() { return emu::dynamic_shared<bf16>(); }
  __device__ static bf16* chunk(int i) { return tile() + i / 8 * kRow + (i % 8 ^ i / 8 % 8) * 8; }
  static constexpr bool copies() {
    return mistake == Mistake::copied || mistake == Mistake::copied_without_proxy_fence || mistake == Mistake::proxy_fence_before_the_copy;
  }

  __device__ void load() const {
    for (int i = static_cast<int>(threadIdx.x); i < kRows * 8; i += static_cast<int>(blockDim.x)) {
      if (copies()) ptx::cp_async<16>(chunk(i), b + i * 8);
      else ptx::store16(chunk(i), ptx::load16(b + i * 8));
    }
    if (mistake == Mistake::proxy_fence_before_the_copy) ptx::fence_proxy_async();
    ptx::cp_async_wait_all();
    constexpr bool without = mistake == Mistake::no_proxy_fence || mistake == Mistake::copied_without_proxy_fence ||
                             mistake == Mistake::proxy_fence_before_the_copy;
    if (!without && (mistake != Mistake::half_the_threads_fence || threadIdx.x % 2)) ptx::fence_proxy_async();
    if (mistake != Mistake::no_barrier) __syncthreads();
  }

  __device__ static ptx::Descriptor descriptor() {
    const bool other = (mistake == Mistake::other_descriptor_in_lane && threadIdx.x == 5) ||
                       (mistake == Mistake::other_descriptor_in_warp && threadIdx.x / 32 == 3);
    const ptx::Descriptor of_tile = ptx::descriptor(tile() + (mistake == Mistake::misplaced ? kRow * 4 : 0), 0, 1024).after(other ? 32 : 0);
    if (mistake == Mistake::beyond_the_end) return of_tile.after(1024);
    return mistake == Mistake::no_swizzle ? ptx::Descriptor{of_tile.bits & ~(uint64_t{3} << 62)} : of_tile;
  }

  // The instructions between the product and its wait.
  __device__ static void spoil(float (&sum)[8][4], uint32_t (&a)[4]) {
    if (mistake == Mistake::d_written_early || mistake == Mistake::d_written_between) sum[3][1] = 7;
    if (mistake == Mistake::a_changed) a[2] = 0;
    if (mistake == Mistake::b_overwritten) *chunk(static_cast<int>(threadIdx.x)) = bf16(9.0f);
  }

  __device__ void operator()() const {
    load();
    if (mistake == Mistake::warp_returns && threadIdx.x < 32) return;
    float sum[8][4];
    uint32_t a[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
    for (auto& tile : sum)
      for (float& x : tile) x = 1;
    if (mistake == Mistake::fence_without_d) ptx::wgmma_fence(a);
    else if (mistake != Mistake::no_fence) ptx::wgmma_fence(sum, a);
    if (mistake == Mistake::two_lines && threadIdx.x >= 96) ptx::wgmma_bf16<false, true>(sum, a, descriptor());
    else if (mistake != Mistake::warp_left_out || threadIdx.x >= 32) ptx::wgmma_bf16<false, true>(sum, a, descriptor());
    spoil(sum, a);
    if (mistake == Mistake::d_written_between) ptx::wgmma_bf16<false, true>(sum, a, descriptor());
    if (mistake != Mistake::no_commit) ptx::wgmma_commit();
    if (mistake == Mistake::read_early) store_to(d, sum);
    if (mistake == Mistake::wait_for_too_few) ptx::wgmma_wait<1>(sum);
    else if (mistake == Mistake::wait_without_d) ptx::wgmma_wait<0>(a);
    else ptx::wgmma_wait<0>(sum);
    if (mistake != Mistake::read_early) store_to(d, sum);
    if (mistake == Mistake::wait_for_too_few) ptx::wgmma_wait<0>(sum);
  }
};

struct Result {
  std::string error;
  int nans = 0, right = 0;
};

// d [64][64] = a b, with a [64][64 k] of rows 1, 2, 3, ... in shared memory after b. k = 0 .. 15 take part.
template <Mistake mistake> struct MultiplyShared {
  const bf16* b;
  float* d;

  __device__ static bf16* chunk(int i) { return Multiply<Mistake::none>::chunk(i); }  // first b's, then a's
  __device__ static ptx::Descriptor left() {
    const unsigned other = mistake == Mistake::left_descriptor_in_lane ? threadIdx.x == 5 : threadIdx.x / 32 == 3;
    const bool differs = mistake == Mistake::left_descriptor_in_lane || mistake == Mistake::left_descriptor_in_warp;
    const ptx::Descriptor of = ptx::descriptor(chunk(kRows * 8) + (mistake == Mistake::left_misplaced ? kRow * 4 : 0), 0, 1024);
    if (mistake == Mistake::left_no_swizzle) return {of.bits & ~(uint64_t{3} << 62)};
    return of.after(mistake == Mistake::left_beyond_the_end ? 1024 : differs && other ? 32 : 0);
  }

  __device__ void operator()() const {
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < kRows * 8; i += 128) ptx::store16(chunk(i), ptx::load16(b + i * 8));
    const auto store_left = [&](float more) {
      for (int i = thread; i < kRows * 8; i += 128)
        for (int x = 0; x < 8; ++x) chunk(kRows * 8 + i)[x] = bf16(static_cast<float>(i / 8 + 1) + more);
    };
    store_left(mistake == Mistake::left_unseen ? 1 : 0);
    ptx::fence_proxy_async();
    __syncthreads();
    if (mistake == Mistake::left_unseen) store_left(0);
    __syncthreads();
    float sum[8][4];
    if (mistake != Mistake::left_without_fence) ptx::wgmma_fence();
    ptx::wgmma_bf16<false, false>(sum, left(), ptx::descriptor(chunk(0), 0, 1024));
    ptx::wgmma_commit();
    if (mistake == Mistake::left_overwritten) store_left(1);
    if (mistake == Mistake::left_read_early) store_to(d, sum);
    ptx::wgmma_wait<0>(sum);
    if (mistake != Mistake::left_read_early) store_to(d, sum);
  }
};

template <Mistake mistake> Result multiply(Order order, unsigned threads = 128) {
  WithOptions options;
  options->order = order;
  std::vector<bf16> host;
  for (int i = 0; i < kRows * kRow; ++i)
    host.push_back(bf16(static_cast<float>(i / kRow + (i % kRow == i / kRow % 16) + (i % kRow >= 16))));
  const DeviceArray<bf16> b(host);
  const DeviceArray<float> d(size_t{threads} * 32);
  Result result;
  constexpr bool shared = mistake >= Mistake::left_shared;
  if constexpr (shared)
    result.error = error_of([&] { launch({1, threads, 2 * kBytes}, MultiplyShared<mistake>{b.data(), d.data()}, {"caller.cu", 12}); });
  else result.error = error_of([&] { launch({1, threads, kBytes}, Multiply<mistake>{b.data(), d.data()}, {"caller.cu", 12}); });
  const std::vector<float> got = d.host();
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t column = i / 4 % 8 * 8 + i / 32 % 4 * 2 + i % 2;
    result.nans += std::isnan(got[i]);
    const size_t row = i / 1024 * 16 + i % 1024 / 32 / 4 + i % 4 / 2 * 8;
    result.right += got[i] == static_cast<float>(shared ? (16 * column + 1) * (row + 1) : 16 * column + 2);
  }
  return result;
}

const Order kOrders[] = {Order::forward, Order::reverse, Order::random};

template <Mistake mistake> void check_error(const std::string& what, unsigned threads = 128) {
  CAPTURE(what);
  for (Order order : kOrders) {
    const std::string error = multiply<mistake>(order, threads).error;
    CAPTURE(error);
    CHECK(contains(error, "kernel: "));
    CHECK(contains(error, what));
    CHECK(contains(error, "(launched at caller.cu:12)"));
  }
}

}  // namespace

TEST_CASE("the result of a product exists after its wait, not before") {
  for (Order order : kOrders) {
    for (const Result& good : {multiply<Mistake::none>(order), multiply<Mistake::copied>(order), multiply<Mistake::left_shared>(order)}) {
      CHECK(good.error == "");
      CHECK(good.right == 64 * 64);
    }
    CHECK(multiply<Mistake::read_early>(order).nans == 64 * 64);
    CHECK(multiply<Mistake::wait_for_too_few>(order).nans == 64 * 64);
    CHECK(multiply<Mistake::left_read_early>(order).nans == 64 * 64);
  }
  check_error<Mistake::no_commit>("returned without waiting for the wgmma_bf16 at ");
}

TEST_CASE("shared memory that the tensor cores do not see yet") {
  const std::string unseen = "was written without a fence_proxy_async of all threads and a barrier after it";
  check_error<Mistake::no_proxy_fence>(unseen);
  check_error<Mistake::copied_without_proxy_fence>(unseen);
  check_error<Mistake::proxy_fence_before_the_copy>(unseen);
  check_error<Mistake::no_barrier>(unseen);
  check_error<Mistake::half_the_threads_fence>(unseen);
  check_error<Mistake::left_unseen>(unseen);
}

#ifndef __SANITIZE_THREAD__  // it reports a data race and fails the program
TEST_CASE("shared memory that is written while a product reads it") {
  check_error<Mistake::b_overwritten>("was overwritten before the wgmma_wait");
  check_error<Mistake::left_overwritten>("was overwritten before the wgmma_wait");
}
#endif

TEST_CASE("registers that are touched before a product is finished") {
  check_error<Mistake::a_changed>("a was changed before the wgmma_wait");
  check_error<Mistake::d_written_early>("d was written before the wait");
  check_error<Mistake::d_written_between>("d was written while an earlier product was unfinished");
}

TEST_CASE("registers that no fence or wait names") {
  check_error<Mistake::no_fence>("no wgmma_fence names its registers since the last wgmma_wait");
  check_error<Mistake::fence_without_d>("no wgmma_fence names its registers since the last wgmma_wait");
  check_error<Mistake::left_without_fence>("no wgmma_fence names its registers since the last wgmma_wait");
  check_error<Mistake::wait_without_d>("the wait completes a product but does not name its d");
}

TEST_CASE("warps of a warpgroup that do not go the same way") {
  check_error<Mistake::two_lines>("divergent warpgroup: one warp is at wgmma_bf16 at ");
  check_error<Mistake::warp_left_out>("divergent warpgroup: one warp is at ");
  check_error<Mistake::warp_returns>("block 0: warp 0 of warpgroup 0 took no part in wgmma_fence at ");
  check_error<Mistake::none>("the last warpgroup of the block has fewer than four warps", 96);
  check_error<Mistake::none>("the last warpgroup of the block has fewer than four warps", 192);
  check_error<Mistake::other_descriptor_in_lane>("the lanes of the warp have different descriptors");
  check_error<Mistake::other_descriptor_in_warp>("the warps of the warpgroup have different descriptors");
  check_error<Mistake::left_descriptor_in_lane>("the lanes of the warp have different descriptors");
  check_error<Mistake::left_descriptor_in_warp>("the warps of the warpgroup have different descriptors");
}

TEST_CASE("descriptors that describe no matrix") {
  check_error<Mistake::no_swizzle>("the descriptor's swizzle is not 128 bytes");
  check_error<Mistake::misplaced>("the matrix begins 512 bytes beyond a multiple of 1024");
  check_error<Mistake::beyond_the_end>("is not in the block's shared memory");
  check_error<Mistake::left_no_swizzle>("the descriptor's swizzle is not 128 bytes");
  check_error<Mistake::left_misplaced>("the matrix begins 512 bytes beyond a multiple of 1024");
  check_error<Mistake::left_beyond_the_end>("is not in the block's shared memory");
}
