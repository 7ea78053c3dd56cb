// dq in bf16 on the warpgroup products of compute capability 9.0, for head widths 64 and 128; the formulas are in backward.h, the bytes
// that are moved in query_gradient.cu, which serves all other widths and GPUs. A thread block owns 128 queries of one head, 64 to each of
// two warpgroups, and goes over the keys they see, 64 at a time. The tensor cores read queries, dy, keys and values from shared memory;
// ds is a left operand in registers. p is computed while they make dy . v.
//
//   cycles  per 64 queries and 64 keys of width k: 2 k / 16 products of 64 x 64 x 16 and 4 of 64 x k x 16 take 6 k cycles of an SM's tensor
//           cores at their peak; 4096 exponentials take 256 cycles, at 16 a cycle
//   floor   k = 64, causal, b n = 768, c = 1024 on an H200: 155 GFLOP at 989 TFLOP/s 0.16 ms; the exponentials 0.10 ms
#include "ops/attention/flash/backward.h"
#include "ops/attention/flash/launch.h"
#include "ops/attention/flash/panels.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping, bool keys_are_values> struct WarpgroupQueryGradientKernel {
  static constexpr int kQueries = 128, kOfWarpgroup = 64, kKeys = 64, kThreads = 2 * kQueries;
  static constexpr int kMinBlocks = kWidth == 64 && !dropping ? 2 : 0;
  using Queries = Panels<kQueries, kWidth>;
  using Keys = Panels<kKeys, kWidth>;
  static constexpr int kStageBytes = keys_are_values ? Keys::kBytes : 2 * Keys::kBytes;  // keys, then values
  static constexpr int kBytes = 2 * Queries::kBytes + 2 * kStageBytes;
  using Scores = float[1][kKeys / 8][4];
  using Sums = float[1][kWidth / 8][4];

  BackwardTensors of;

  struct OfWarp {
    int head, t;  // the warp's first query
    QuerySums<1> sums;
  };

  HD int blocks() const { return blocks_of<kQueries>(of.problem.queries); }
  __device__ static Queries queries() { return {dynamic_shared<bf16>()}; }
  __device__ static Queries gradients() { return {queries().data + Queries::kBytes / 2}; }
  __device__ static int stage_of(int j0) { return static_cast<int>(static_cast<unsigned>(j0) / kKeys % 2); }
  __device__ static Keys keys(int stage) { return {dynamic_shared<bf16>() + (2 * Queries::kBytes + kStageBytes * stage) / 2}; }
  __device__ static Keys values(int stage) { return {keys(stage).data + (kStageBytes - Keys::kBytes) / 2}; }

  __device__ void operator()() const {
    const Problem& problem = of.problem;
    const Place at(problem, problem.keys, blocks(), true);
    const Visible visible(of.bounds, problem, at.head);
    const int t0 = at.block * kQueries, row = warp() * 16;
    queries().template begin<kThreads>(of.q, chunk_of(of.q, problem, at.head), t0, of.bounds.queries);
    gradients().template begin<kThreads>(of.dy, chunk_of(of.dy, problem, at.head), t0, of.bounds.queries);
    const int k_chunk = chunk_of(of.k, problem, at.head), v_chunk = chunk_of(of.v, problem, at.head);
    const int first = visible.first_key(t0) / kKeys * kKeys, end = visible.end_key(t0 + kQueries);
    if (first < end) begin_keys(k_chunk, v_chunk, first, visible.keys, stage_of(first));
    const OfWarp own{at.head, t0 + row, {of, at.head, t0 + row}};
    Sums dq = {};
    UNROLL(1)
    for (int j0 = first; j0 < end; j0 += kKeys) {
      const int stage = stage_of(j0);
      ptx::cp_async_wait_all();
      ptx::fence_proxy_async();
      __syncthreads();  // these have arrived; those before have been read
      if (j0 + kKeys < end) begin_keys(k_chunk, v_chunk, j0 + kKeys, visible.keys, stage ^ 1);
      add_keys(visible, own, j0, stage, dq);
    }
    ptx::cp_async_wait_all();
    __syncthreads();  // the queries have been read; their place takes dq
    store(dq, own, row);
  }

  __device__ void begin_keys(int k_chunk, int v_chunk, int j0, int keys_of_head, int stage) const {
    keys(stage).template begin<kThreads>(of.k, k_chunk, j0, keys_of_head);
    if constexpr (!keys_are_values) values(stage).template begin<kThreads>(of.v, v_chunk, j0, keys_of_head);
  }

  // All four warps of a warpgroup take part in its products: they skip keys together.
  __device__ void add_keys(const Visible& visible, const OfWarp& own, int j, int stage, Sums& dq) const {
    const int of_warpgroup = own.t / kOfWarpgroup * kOfWarpgroup, rows = of_warpgroup % kQueries * Queries::kRowBytes;
    if (visible.none(of_warpgroup, of_warpgroup + kOfWarpgroup, j, j + kKeys)) return;
    Scores p, ds;
    ptx::wgmma_fence();
    begin_scores<Queries, Keys>(p[0], queries().descriptor().after(rows), keys(stage).descriptor());
    begin_scores<Queries, Keys>(ds[0], gradients().descriptor().after(rows), values(stage).descriptor());
    KeptBits kept;
    if constexpr (dropping) kept.draw_queries(of.problem, own.head, own.t, j);
    ptx::wgmma_wait<1>(p);
    own.sums.weigh(of.z, p);
    if (!visible.all(own.t, own.t + 16, j, j + kKeys)) hide_keys(visible, own.t, j, p, 0.0f);
    ptx::wgmma_wait<0>(ds);
    own.sums.template differentiate<dropping>(of, kept, p, ds);
    uint32_t w[kKeys / 16][4];
    pack_left(w, ds[0]);
    ptx::wgmma_fence(dq, w);
    begin_weighted<Keys>(dq[0], w, keys(stage).descriptor());
    ptx::wgmma_wait<0>(dq);
  }

  __device__ void store(const Sums& dq, const OfWarp& own, int row) const {
    const float scale = static_cast<float>(of.problem.scale);
    const bool add = of.dq.data == of.dk.data || of.dq.data == of.dv.data;  // those have been stored
    store_rows<1, kWidth>(
        dq, [&](int, int) { return scale; }, {queries().data}, row, row_of(of.dq, chunk_of(of.dq, of.problem, own.head), own.t),
        static_cast<int>(of.dq.row), of.bounds.queries - own.t, add);
  }
};

HOST void wgmma_query_gradient(const BackwardTensors& of, Device device) {
  launch_wgmma<WarpgroupQueryGradientKernel>("attention' dq", device, of.problem, of.k == of.v, of);
}

}  // namespace flash
}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_WGMMA(WarpgroupQueryGradientKernel);

}  // namespace ricci
