// The forward in bf16 on the warpgroup products of compute capability 9.0, for head widths 64 and 128; the formulas and the bytes that are
// moved are forward.cu's, which serves all other widths and GPUs. A thread block owns 128 queries of one head, 64 to each of two
// warpgroups, and goes over the keys they see, 64 at a time. Queries and weights are left operands in registers. Keys and values are
// right operands that the tensor cores read from shared memory themselves, which saves the instructions and registers of ldmatrix.
// While one warpgroup computes its softmax, the tensor cores work for another.
//
//   cycles  per 64 queries and 64 keys of width k: k / 16 products of 64 x 64 x 16 and 4 of 64 x k x 16 take 4 k cycles of an SM's tensor
//           cores at their peak; 4096 exponentials take 256 cycles, at 16 a cycle
//   floor   k = 64, causal, b n = 768, c = 1024 on an H200: 103 GFLOP at 989 TFLOP/s 0.10 ms, and as long again for the exponentials
#include "cuda/device/device_memory.h"
#include "ops/attention/flash/flash.h"
#include "ops/attention/flash/launch.h"
#include "ops/attention/flash/softmax.h"
#include "ops/attention/flash/wgmma/panels.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping, bool keys_are_values, bool packed> struct WarpgroupForwardKernel {
  using Visible = VisibleToQueries<packed>;
  static constexpr int kQueries = 128, kOfWarpgroup = 64, kKeys = 64, kThreads = 2 * kQueries;
  using Queries = Panels<kQueries, kWidth>;
  using Keys = Panels<kKeys, kWidth>;
  static constexpr int kStageBytes = keys_are_values ? Keys::kBytes : 2 * Keys::kBytes;  // keys, then values
  static constexpr int kBytes = Queries::kBytes + 2 * kStageBytes;
  using State = Softmax<1, kKeys / 8, kWidth>;
  using Left = uint32_t[kWidth / 16][4];

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
    Visible visible(bounds, problem, place.head);
    const int t0 = place.block * kQueries, row = warp() * 16, t = t0 + row;
    visible.hold(t, t - warp() % 4 * 16);
    queries().template begin<kThreads>(q, chunk_of(q, problem, place.head), t0, bounds.queries);
    ptx::cp_async_commit();
    const int k_chunk = chunk_of(k, problem, place.head), v_chunk = chunk_of(v, problem, place.head);
    const int first = visible.first_key(t0) / kKeys * kKeys, end = visible.end_key(t0 + kQueries);
    if (first < end) begin_keys(k_chunk, v_chunk, first, visible.keys, 0);
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    __syncthreads();
    Left of_warp;
    load(of_warp, row);
    State state;
    UNROLL(1)
    for (int j0 = first, stage = 0; j0 < end; j0 += kKeys, stage ^= 1) {
      ptx::cp_async_wait_all();
      ptx::fence_proxy_async();
      __syncthreads();  // these have arrived; those before have been read
      if (j0 + kKeys < end) begin_keys(k_chunk, v_chunk, j0 + kKeys, visible.keys, stage ^ 1);
      add_keys(visible, of_warp, place.head, t, j0, stage, state);
    }
    __syncthreads();  // the queries have been read; their place takes the output
    state.finish(problem, y, lse + place.head * bounds.queries + t, place.head, t, bounds.queries - t, {queries().data}, row);
  }

  __device__ void begin_keys(int k_chunk, int v_chunk, int j0, int keys_of_head, int stage) const {
    keys(stage).template begin<kThreads>(k, k_chunk, j0, keys_of_head);
    if constexpr (!keys_are_values) values(stage).template begin<kThreads>(v, v_chunk, j0, keys_of_head);
  }

  __device__ static void load(Left& of_warp, int row) {
    UNROLL(2)
    for (int i = 0; i < Queries::kCount; ++i) {
      const HeldRows<1, 64> held(queries().panel(i), row);
      UNROLL(16)
      for (int n = 0; n < 16; ++n) of_warp[4 * i + n / 4][n % 4] = held.held[n / 4][0][n % 4];
    }
  }

  // All four warps of a warpgroup take part in its products: they skip keys together.
  __device__ void add_keys(const Visible& visible, Left& of_warp, int head, int t, int j0, int stage, State& state) const {
    const int of_warpgroup = t - warp() % 4 * 16;
    if (visible.none(of_warpgroup, of_warpgroup + kOfWarpgroup, j0, j0 + kKeys)) return;
    typename State::Scores s;
    add_scores(s[0], of_warp, keys(stage).descriptor());
    if (!visible.all(t, t + 16, j0, j0 + kKeys)) hide_keys(visible, t, j0, s, State::kLowest);
    state.weigh(s, static_cast<float>(problem.scale) * kLog2E);
    if constexpr (dropping) State::drop(problem, head, t, j0, s);
    add_weighted(state.o[0], s[0], values(stage).descriptor());
  }

  // s = q k^T
  __device__ static void add_scores(float (&s)[kKeys / 8][4], Left& of_warp, ptx::Descriptor b) {
    ptx::wgmma_fence(of_warp);
    ptx::wgmma_bf16<false, false>(s, of_warp[0], b);
    UNROLL(16)
    for (int k = 1; k < kWidth / 16; ++k) ptx::wgmma_bf16<false, true>(s, of_warp[k], b.after(Keys::columns(k)));
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(s);
  }

  // o += p v, with p rounded to bf16.
  __device__ static void add_weighted(float (&o)[kWidth / 8][4], const float (&p)[kKeys / 8][4], ptx::Descriptor b) {
    uint32_t w[kKeys / 16][4];
    pack_left(w, p);
    ptx::wgmma_fence(o, w);
    begin_weighted<Keys>(o, w, b);
    ptx::wgmma_wait<0>(o);
  }
};

}  // namespace flash

HOST bool wgmma_takes(const Problem& problem, Device device) {
  return (problem.width == 64 || problem.width == 128) && device_memory(device).has_wgmma();
}

HOST void wgmma_forward(const Problem& problem, const Views& inputs, const Outputs& out) {
  const auto q = head_rows<const bf16>(inputs.q), k = head_rows<const bf16>(inputs.k), v = head_rows<const bf16>(inputs.v);
  flash::launch_wgmma<flash::WarpgroupForwardKernel>("attention", out.y_bcd.device(), problem, k == v, problem, flash::Bounds(problem), q,
      k, v, head_rows<bf16>({out.y_bcd}), out.lse_bnc.data<float>());
}

}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_WGMMA(WarpgroupForwardKernel);

}  // namespace ricci
