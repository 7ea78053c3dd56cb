// The forward pass in bf16 with the warpgroup products of compute capability 9.0, for head widths 64 and 128. Here the tensor cores read
// queries, keys and values directly from shared memory. This saves the instructions and registers of ldmatrix: the forward and backward
// passes are 1.22 times as fast as with mma.sync (width 64, causal, H200, 2026-11-26: tests/bench/README.md). ../forward.cu lists the
// formulas and the bytes, and is used for all other widths and GPUs. A thread block has 128 queries of one head, 64 for each of two
// warpgroups, and loops over the keys they see, 64 at a time. Weights are left operands in registers. While one warpgroup computes its
// softmax, the tensor cores work for another.
//
// Queries in registers would save shared memory traffic, but ptxas of CUDA 13.0 compiles that wrongly: it reuses the registers of a left
// operand within the loop, although the next round reads them again. Results for width 64 were wrong from the second tile of keys on.
//
//   cycles  per 64 queries and 64 keys of width k: k / 16 products of 64 x 64 x 16 and 4 of 64 x k x 16 take 4 k cycles of an SM's tensor
//           cores at their peak; 4096 exponentials take 256 cycles, at 16 a cycle
#include "cuda/device/device_memory.h"
#include "ops/attention/flash/flash.h"
#include "ops/attention/flash/softmax.h"
#include "ops/attention/flash/wgmma/panels.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping, bool keys_are_values> struct WarpgroupForwardKernel {
  static constexpr int kQueries = 128, kOfWarpgroup = 64, kKeys = 64, kThreads = 2 * kQueries;
  using Queries = Panels<kQueries, kWidth>;
  using Keys = Panels<kKeys, kWidth>;
  static constexpr int kStageBytes = keys_are_values ? Keys::kBytes : 2 * Keys::kBytes;  // keys, then values
  static constexpr int kBytes = Queries::kBytes + 2 * kStageBytes;
  using State = Softmax<1, kKeys / 8, kWidth>;

  Problem problem;
  Bounds bounds;
  HeadRows<const bf16> q, k, v;
  HeadRows<bf16> y;
  float* lse;

  HD int blocks() const { return blocks_of<kQueries>(problem.queries); }
  __device__ static Queries queries() { return {dynamic_shared<bf16>()}; }
  __device__ static Keys keys(int stage) { return {dynamic_shared<bf16>() + (Queries::kBytes + kStageBytes * stage) / 2}; }
  __device__ static Keys values(int stage) { return {keys(stage).data + (kStageBytes - Keys::kBytes) / 2}; }

  __device__ void operator()() const {
    const Place place(problem, problem.keys, blocks(), true);
    const Visible visible(bounds, problem, place.head);
    const int t0 = place.block * kQueries, row = warp() * 16, t = t0 + row;
    queries().template begin<kThreads>(q, chunk_of(q, problem, place.head), t0, bounds.queries);
    const int k_chunk = chunk_of(k, problem, place.head), v_chunk = chunk_of(v, problem, place.head);
    const int first = visible.first_key(t0) / kKeys * kKeys, end = visible.end_key(t0 + kQueries);
    if (first < end) begin_keys(k_chunk, v_chunk, first, visible.keys, 0);
    State state;
    UNROLL(1)
    for (int j0 = first, stage = 0; j0 < end; j0 += kKeys, stage ^= 1) {
      ptx::cp_async_wait_all();
      ptx::fence_proxy_async();
      __syncthreads();  // this stage has arrived; the other stage has been read
      if (j0 + kKeys < end) begin_keys(k_chunk, v_chunk, j0 + kKeys, visible.keys, stage ^ 1);
      add_keys(visible, place.head, t, j0, stage, state);
    }
    ptx::cp_async_wait_all();
    __syncthreads();  // the queries have been read; the output overwrites them
    state.finish(problem, y, lse + place.head * bounds.queries + t, place.head, t, bounds.queries - t, {queries().data}, row);
  }

  __device__ void begin_keys(int k_chunk, int v_chunk, int j0, int keys_of_head, int stage) const {
    keys(stage).template begin<kThreads>(k, k_chunk, j0, keys_of_head);
    if constexpr (!keys_are_values) values(stage).template begin<kThreads>(v, v_chunk, j0, keys_of_head);
  }

  // A warpgroup's products need all its warps, so they skip keys together.
  __device__ void add_keys(const Visible& visible, int head, int t, int j0, int stage, State& state) const {
    const int of_warpgroup = t - warp() % 4 * 16, rows = of_warpgroup % kQueries * Queries::kRowBytes;
    if (visible.none(of_warpgroup, of_warpgroup + kOfWarpgroup, j0, j0 + kKeys)) return;
    typename State::Scores s;
    ptx::wgmma_fence();
    begin_scores<Queries, Keys>(s[0], queries().descriptor().after(rows), keys(stage).descriptor());
    ptx::wgmma_wait<0>(s);
    if (!visible.all(t, t + 16, j0, j0 + kKeys)) hide_keys(visible, t, j0, s, State::kLowest);
    state.weigh(s, static_cast<float>(problem.score_scale) * kLog2E);
    if constexpr (dropping) State::drop(problem, head, t, j0, s);
    add_weighted<Keys>(state.o, s[0], values(stage).descriptor());
  }
};

}  // namespace flash

HOST bool wgmma_takes(const Problem& problem, Device device) {
  return (problem.width == 64 || problem.width == 128) && device_memory(device).has_wgmma();
}

HOST void wgmma_forward(const Problem& problem, const QueryKeyValue& inputs, const Outputs& out) {
  const auto q = head_rows<const bf16>(inputs.q), k = head_rows<const bf16>(inputs.k), v = head_rows<const bf16>(inputs.v);
  flash::launch_flash<flash::WarpgroupForwardKernel, 64, 128>("attention", out.y_bcd.device(), problem, k == v, problem,
      flash::Bounds(problem), q, k, v, head_rows<bf16>({out.y_bcd}), out.lse_bnc.data<float>());
}

}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_WGMMA(WarpgroupForwardKernel);

}  // namespace ricci
