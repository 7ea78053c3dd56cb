// Computes dk and dv in bf16 with the warpgroup products of compute capability 9.0, for head widths 64 and 128. Tensor cores reach their
// peak only with these products: the forward and backward passes are 1.39 times as fast as with mma.sync (width 128, H200, 2026-11-26:
// tests/bench/README.md). The formulas are in backward.h. key_gradient.cu lists the bytes and is used for all other widths and GPUs. A
// thread block has 64 keys of one head for each warpgroup, and loops over the queries that see them, 64 at a time. Scores are transposed.
// The tensor cores read keys, values, queries and dy from shared memory; p and ds have the layout of a left operand and never leave the
// registers. While one warpgroup works on its scores, the tensor cores work for another; p is computed while the tensor cores compute
// v . dy.
//
//   cycles  per 64 keys and 64 queries of width k: 2 k / 16 products of 64 x 64 x 16 and 8 of 64 x k x 16 take 8 k cycles of an SM's
//           tensor cores at their peak; 4096 exponentials take 256 cycles, at 16 a cycle
#include "ops/attention/flash/backward.h"

#include "ops/attention/flash/flash.h"
#include "ops/attention/flash/wgmma/panels.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping, bool keys_are_values> struct WarpgroupKeyGradientKernel {
  static constexpr int kWarpgroups = kWidth == 64 && !dropping ? 3 : 2, kThreads = 128 * kWarpgroups;  // limited by registers
  static constexpr int kOfWarpgroup = 64, kKeys = kOfWarpgroup * kWarpgroups, kQueries = 64;
  static constexpr int kLoading = 256;  // threads that load queries and dy
  using Keys = Panels<kKeys, kWidth>;
  using Queries = Panels<kQueries, kWidth>;
  static constexpr int kOwnBytes = keys_are_values ? Keys::kBytes : 2 * Keys::kBytes, kStageBytes = 2 * Queries::kBytes;
  static constexpr int kSums = kOwnBytes + 2 * kStageBytes, kBytes = kSums + 4 * kQueries * 4, kGradients = keys_are_values ? 1 : 2;
  using Scores = float[1][kQueries / 8][4];

  BackwardTensors tensors;

  struct Sources {  // the first q and dy of a head
    int head, q_chunk, dy_chunk;
  };
  struct WarpState {
    int head, j;                                    // the warp's first key
    float gradients[kGradients][1][kWidth / 8][4];  // for the keys, then for the values
  };

  HD int blocks() const { return blocks_of<kKeys>(tensors.problem.keys); }
  __device__ static Keys keys() { return {dynamic_shared<bf16>()}; }
  __device__ static Keys values() { return {dynamic_shared<bf16>() + (kOwnBytes - Keys::kBytes) / 2}; }
  __device__ static int stage_of(int t0) { return static_cast<int>(static_cast<unsigned>(t0) / kQueries % 2); }
  __device__ static Queries queries(int stage) { return {dynamic_shared<bf16>() + (kOwnBytes + kStageBytes * stage) / 2}; }
  __device__ static Queries gradients(int stage) { return {queries(stage).data + Queries::kBytes / 2}; }
  // A stage's sums: kQueries numbers of lse, then kQueries of delta.
  __device__ static float* sums(int stage) { return dynamic_shared<float>() + kSums / 4 + 2 * kQueries * stage; }

  __device__ void operator()() const {
    const Problem& problem = tensors.problem;
    const Place place(problem, problem.queries, blocks(), false);
    const Visible visible(tensors.bounds, problem, place.head);
    const int j0 = place.block * kKeys, row = warp() * 16;
    keys().template begin<kThreads>(tensors.k, chunk_of(tensors.k, problem, place.head), j0, visible.keys);
    if constexpr (!keys_are_values)
      values().template begin<kThreads>(tensors.v, chunk_of(tensors.v, problem, place.head), j0, visible.keys);
    const Sources from{place.head, chunk_of(tensors.q, problem, place.head), chunk_of(tensors.dy, problem, place.head)};
    const int first = visible.first_query(j0) / kQueries * kQueries, end = visible.end_query(j0, j0 + kKeys);
    if (first < end) begin_queries(from, first, stage_of(first));
    WarpState own{place.head, j0 + row, {}};
    UNROLL(1)
    for (int t0 = first; t0 < end; t0 += kQueries) {
      const int stage = stage_of(t0);
      ptx::cp_async_wait_all();
      ptx::fence_proxy_async();
      __syncthreads();  // these queries have arrived; the previous queries have been read
      if (t0 + kQueries < end) begin_queries(from, t0 + kQueries, stage ^ 1);
      add_queries(visible, t0, stage, own);
    }
    ptx::cp_async_wait_all();
    __syncthreads();  // keys and values have been read; the gradients overwrite them
    store(own, row);
  }

  // Starts to load queries. Rows after the last query become zeros: p = 1 is multiplied by dy = 0, and ds = 0.
  __device__ void begin_queries(const Sources& from, int t0, int stage) const {
    if (threadIdx.x < kLoading) {
      queries(stage).template begin<kLoading>(tensors.q, from.q_chunk, t0, tensors.bounds.queries);
      gradients(stage).template begin<kLoading>(tensors.dy, from.dy_chunk, t0, tensors.bounds.queries);
    }
    const int i = static_cast<int>(threadIdx.x) - (kThreads - 2 * kQueries), t = t0 + i % kQueries;
    const int index = from.head * tensors.bounds.queries + t, bytes = t < tensors.bounds.queries ? 4 : 0;
    if (i >= kQueries) ptx::cp_async<4>(sums(stage) + i, tensors.delta + index, bytes);
    else if (i >= 0) ptx::cp_async<4>(sums(stage) + i, tensors.lse + index, bytes);
  }

  // A warpgroup's products need all its warps, so they skip queries together.
  __device__ void add_queries(const Visible& visible, int t, int stage, WarpState& own) const {
    const int of_warpgroup = own.j / kOfWarpgroup * kOfWarpgroup, rows = of_warpgroup % kKeys * Keys::kRowBytes;
    if (visible.none(t, t + kQueries, of_warpgroup, of_warpgroup + kOfWarpgroup)) return;
    Scores p, ds;
    ptx::wgmma_fence();
    begin_scores<Keys, Queries>(p[0], keys().descriptor().after(rows), queries(stage).descriptor());
    begin_scores<Keys, Queries>(ds[0], values().descriptor().after(rows), gradients(stage).descriptor());
    KeptBits kept;
    if constexpr (dropping) kept.draw_keys(tensors.problem, own.head, t, own.j);
    ptx::wgmma_wait<1>(p);
    weigh_keys(tensors, sums(stage), p);
    if (!visible.all(t, t + kQueries, own.j, own.j + 16)) hide_queries(visible, t, own.j, p);
    uint32_t w[2][kQueries / 16][4];
    constexpr bool early = !dropping && kGradients == 2;  // the products of dv start while ds is computed, if registers are free
    if constexpr (early) {
      pack_left(w[0], p[0]);
      ptx::wgmma_fence(own.gradients[1], w[0]);
      begin_weighted<Queries>(own.gradients[1][0], w[0], gradients(stage).descriptor());
    }
    ptx::wgmma_wait<early ? 1 : 0>(ds);
    differentiate_keys<dropping, keys_are_values>(tensors, kept, sums(stage) + kQueries, p, ds);
    pack_left(w[1], ds[0]);
    if constexpr (early) {
      ptx::wgmma_fence(own.gradients[0], w[1]);
    } else {
      pack_left(w[0], p[0]);
      ptx::wgmma_fence(own.gradients, w);
      begin_weighted<Queries>(own.gradients[kGradients - 1][0], w[0], gradients(stage).descriptor());
    }
    begin_weighted<Queries>(own.gradients[0][0], w[1], queries(stage).descriptor());
    ptx::wgmma_wait<0>(own.gradients);
  }

  // Stores the gradients, with zeros for padding.
  __device__ void store(const WarpState& own, int row) const {
    if constexpr (!keys_are_values) store(own.gradients[0], tensors.dk, static_cast<float>(tensors.problem.score_scale), keys(), row, own);
    store(own.gradients[kGradients - 1], tensors.dv, 1, values(), row, own);
  }
  __device__ void store(const float (&gradient)[1][kWidth / 8][4], const HeadRows<bf16>& target, float factor, const Keys& by, int row,
      const WarpState& own) const {
    store_rows<1, kWidth>(
        gradient, [&](int, int) { return factor; }, {by.data}, row, row_of(target, chunk_of(target, tensors.problem, own.head), own.j),
        static_cast<int>(target.row), tensors.bounds.keys - own.j);
  }
};

HOST void wgmma_key_gradient(const BackwardTensors& tensors, Device device) {
  launch_flash<WarpgroupKeyGradientKernel, 64, 128>("attention' dk dv", device, tensors.problem, tensors.dk == tensors.dv, tensors);
}

// Computes dq with the warpgroup products; called by query_gradient.cu. A thread block has 128 queries of one head, 64 for each of two
// warpgroups, and loops over the keys they see, 64 at a time. The tensor cores read queries, dy, keys and values from shared memory; ds is
// a left operand in registers. p is computed while the tensor cores compute dy . v.
//
//   cycles  per 64 queries and 64 keys of width k: 2 k / 16 products of 64 x 64 x 16 and 4 of 64 x k x 16 take 6 k cycles of an SM's
//           tensor cores at their peak; 4096 exponentials take 256 cycles, at 16 a cycle
template <int kWidth, bool dropping, bool keys_are_values> struct WarpgroupQueryGradientKernel {
  static constexpr int kQueries = 128, kOfWarpgroup = 64, kKeys = 64, kThreads = 2 * kQueries;
  static constexpr int kMinBlocks = kWidth == 64 && !dropping ? 2 : 0;
  using Queries = Panels<kQueries, kWidth>;
  using Keys = Panels<kKeys, kWidth>;
  static constexpr int kStageBytes = keys_are_values ? Keys::kBytes : 2 * Keys::kBytes;  // keys, then values
  static constexpr int kBytes = 2 * Queries::kBytes + 2 * kStageBytes;
  using Scores = float[1][kKeys / 8][4];
  using Sums = float[1][kWidth / 8][4];

  BackwardTensors tensors;

  struct WarpState {
    int head, t;  // the warp's first query
    QuerySums<1> sums;
  };

  HD int blocks() const { return blocks_of<kQueries>(tensors.problem.queries); }
  __device__ static Queries queries() { return {dynamic_shared<bf16>()}; }
  __device__ static Queries gradients() { return {queries().data + Queries::kBytes / 2}; }
  __device__ static int stage_of(int j0) { return static_cast<int>(static_cast<unsigned>(j0) / kKeys % 2); }
  __device__ static Keys keys(int stage) { return {dynamic_shared<bf16>() + (2 * Queries::kBytes + kStageBytes * stage) / 2}; }
  __device__ static Keys values(int stage) { return {keys(stage).data + (kStageBytes - Keys::kBytes) / 2}; }

  __device__ void operator()() const {
    const Problem& problem = tensors.problem;
    const Place place(problem, problem.keys, blocks(), true);
    const Visible visible(tensors.bounds, problem, place.head);
    const int t0 = place.block * kQueries, row = warp() * 16;
    queries().template begin<kThreads>(tensors.q, chunk_of(tensors.q, problem, place.head), t0, tensors.bounds.queries);
    gradients().template begin<kThreads>(tensors.dy, chunk_of(tensors.dy, problem, place.head), t0, tensors.bounds.queries);
    const int k_chunk = chunk_of(tensors.k, problem, place.head), v_chunk = chunk_of(tensors.v, problem, place.head);
    const int first = visible.first_key(t0) / kKeys * kKeys, end = visible.end_key(t0 + kQueries);
    if (first < end) begin_keys(k_chunk, v_chunk, first, visible.keys, stage_of(first));
    const WarpState own{place.head, t0 + row, {tensors, place.head, t0 + row}};
    Sums dq = {};
    UNROLL(1)
    for (int j0 = first; j0 < end; j0 += kKeys) {
      const int stage = stage_of(j0);
      ptx::cp_async_wait_all();
      ptx::fence_proxy_async();
      __syncthreads();  // these keys have arrived; the previous keys have been read
      if (j0 + kKeys < end) begin_keys(k_chunk, v_chunk, j0 + kKeys, visible.keys, stage ^ 1);
      add_keys(visible, own, j0, stage, dq);
    }
    ptx::cp_async_wait_all();
    __syncthreads();  // the queries have been read; dq overwrites them
    store(dq, own, row);
  }

  __device__ void begin_keys(int k_chunk, int v_chunk, int j0, int keys_of_head, int stage) const {
    keys(stage).template begin<kThreads>(tensors.k, k_chunk, j0, keys_of_head);
    if constexpr (!keys_are_values) values(stage).template begin<kThreads>(tensors.v, v_chunk, j0, keys_of_head);
  }

  // A warpgroup's products need all its warps, so they skip keys together.
  __device__ void add_keys(const Visible& visible, const WarpState& own, int j, int stage, Sums& dq) const {
    const int of_warpgroup = own.t / kOfWarpgroup * kOfWarpgroup, rows = of_warpgroup % kQueries * Queries::kRowBytes;
    if (visible.none(of_warpgroup, of_warpgroup + kOfWarpgroup, j, j + kKeys)) return;
    Scores p, ds;
    ptx::wgmma_fence();
    begin_scores<Queries, Keys>(p[0], queries().descriptor().after(rows), keys(stage).descriptor());
    begin_scores<Queries, Keys>(ds[0], gradients().descriptor().after(rows), values(stage).descriptor());
    KeptBits kept;
    if constexpr (dropping) kept.draw_queries(tensors.problem, own.head, own.t, j);
    ptx::wgmma_wait<1>(p);
    own.sums.weigh(tensors.z, p);
    if (!visible.all(own.t, own.t + 16, j, j + kKeys)) hide_keys(visible, own.t, j, p, 0.0f);
    ptx::wgmma_wait<0>(ds);
    own.sums.template differentiate<dropping>(tensors, kept, p, ds);
    add_weighted<Keys>(dq, ds[0], keys(stage).descriptor());
  }

  __device__ void store(const Sums& dq, const WarpState& own, int row) const {
    const float scale = static_cast<float>(tensors.problem.score_scale);
    const bool add = tensors.dq.data == tensors.dk.data || tensors.dq.data == tensors.dv.data;  // dk or dv is stored already
    store_rows<1, kWidth>(
        dq, [&](int, int) { return scale; }, {queries().data}, row,
        row_of(tensors.dq, chunk_of(tensors.dq, tensors.problem, own.head), own.t), static_cast<int>(tensors.dq.row),
        tensors.bounds.queries - own.t, add);
  }
};

HOST void wgmma_query_gradient(const BackwardTensors& tensors, Device device) {
  launch_flash<WarpgroupQueryGradientKernel, 64, 128>("attention' dq", device, tensors.problem, tensors.k == tensors.v, tensors);
}

}  // namespace flash
}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_WGMMA(WarpgroupKeyGradientKernel);
CUDA_WGMMA(WarpgroupQueryGradientKernel);

}  // namespace ricci
