// Computes dq in bf16 on tensor cores (formulas in backward.h): a thread block has 128 queries of one head, 32 or 16 per warp, and loops
// over the keys they see, 32 at a time. In this separate kernel, each sum belongs to one thread block and needs no atomics. Scores and
// their gradients never leave the registers. Keys that are also the values are copied once. GPUs with wgmma use wgmma/backward.cu for
// widths 64 and 128.
//
// With N = b n c queries of width k, and N keys:
//   bytes   10 N k read and written (q, k, v, dy, dq, once) + 8 N of lse and delta; keys and values read again from L2, c / 128 times
//   FLOPs   6 N c k, half of it when causal; exponentials N c, half of it when causal
#include "ops/attention/flash/backward.h"
#include "ops/attention/flash/flash.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping, bool keys_are_values> struct QueryGradientKernel {
  static constexpr int kQueries = 128, kKeys = 64, kPart = 32, kPartTiles = kPart / 8;
  static constexpr int kTiles = kWidth <= (dropping ? 32 : 96) ? 2 : 1, kThreads = kQueries / (16 * kTiles) * 32;  // limited by registers
  static constexpr int kStage = keys_are_values ? kKeys : 2 * kKeys;  // rows of a stage: keys, then values
  static constexpr int kBytes = (2 * kQueries + 2 * kStage) * Tile<kWidth>::kRowBytes;
  using LeftRows = ChosenRows<kWidth <= 64 || kTiles == 1, kTiles, kWidth>;
  using Scores = float[kTiles][kPartTiles][4];

  BackwardTensors tensors;

  struct WarpState {
    int head, t;  // the warp's first query
    LeftRows q, dy;
    QuerySums<kTiles> sums;
  };

  HD int blocks() const { return blocks_of<kQueries>(tensors.problem.queries); }
  __device__ static Tile<kWidth> queries() { return {dynamic_shared<bf16>()}; }
  __device__ static Tile<kWidth> gradients() { return queries().after(kQueries); }
  __device__ static Tile<kWidth> keys(int stage) { return queries().after(2 * kQueries + kStage * stage); }
  __device__ static Tile<kWidth> values(int stage) { return keys(stage).after(kStage - kKeys); }

  __device__ void operator()() const {
    const Problem& problem = tensors.problem;
    const Place place(problem, problem.keys, blocks(), true);
    const Visible visible(tensors.bounds, problem, place.head);
    const int t0 = place.block * kQueries, row = warp() * 16 * kTiles, t = t0 + row;
    begin_rows<kQueries, kThreads>(queries(), tensors.q, chunk_of(tensors.q, problem, place.head), t0, tensors.bounds.queries);
    begin_rows<kQueries, kThreads>(gradients(), tensors.dy, chunk_of(tensors.dy, problem, place.head), t0, tensors.bounds.queries);
    ptx::cp_async_commit();
    const int k_chunk = chunk_of(tensors.k, problem, place.head), v_chunk = chunk_of(tensors.v, problem, place.head);
    const int first = visible.first_key(t0) / kKeys * kKeys, end = visible.end_key(t0 + kQueries);
    if (first < end) begin_keys(k_chunk, v_chunk, first, visible.keys, 0);
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    __syncthreads();
    WarpState own{place.head, t, LeftRows(queries(), row), LeftRows(gradients(), row), {tensors, place.head, t}};
    float dq[kTiles][kWidth / 8][4] = {};
    UNROLL(1)
    for (int j0 = first, stage = 0; j0 < end; j0 += kKeys, stage ^= 1) {
      ptx::cp_async_wait_all();
      __syncthreads();  // this stage has arrived; the other stage has been read
      if (j0 + kKeys < end) begin_keys(k_chunk, v_chunk, j0 + kKeys, visible.keys, stage ^ 1);
      UNROLL(1)
      for (int part = 0; part < kKeys; part += kPart) add_keys(visible, own, j0, part, stage, dq);
    }
    store(dq, own, row);
  }

  __device__ void begin_keys(int k_chunk, int v_chunk, int j0, int keys_of_head, int stage) const {
    begin_rows<kKeys, kThreads>(keys(stage), tensors.k, k_chunk, j0, keys_of_head);
    if constexpr (!keys_are_values) begin_rows<kKeys, kThreads>(values(stage), tensors.v, v_chunk, j0, keys_of_head);
  }

  __device__ void add_keys(
      const Visible& visible, const WarpState& own, int j0, int part, int stage, float (&dq)[kTiles][kWidth / 8][4]) const {
    const int j = j0 + part, t1 = own.t + 16 * kTiles;
    if (visible.none(own.t, t1, j, j + kPart)) return;
    Scores p = {}, ds = {};
    add_scores(p, own.q, keys(stage), part);
    add_scores(ds, own.dy, values(stage), part);
    own.sums.weigh(static_cast<float>(tensors.problem.score_scale) * kLog2E, p);
    if (!visible.all(own.t, t1, j, j + kPart)) hide_keys(visible, own.t, j, p, 0.0f);
    const Kept kept(tensors.problem, own.head);
    own.sums.template differentiate<dropping>(
        tensors, [&](int i, int x) { return kept.of_queries(own.t + 16 * i, j + 8 * x); }, p, ds);
    add_weighted<kTiles, kWidth>(dq, ds, keys(stage), part);
  }

  __device__ void store(const float (&dq)[kTiles][kWidth / 8][4], const WarpState& own, int row) const {
    const float scale = static_cast<float>(tensors.problem.score_scale);
    const bool add = tensors.dq.data == tensors.dk.data || tensors.dq.data == tensors.dv.data;  // dk or dv is stored already
    store_rows<kTiles, kWidth>(
        dq, [&](int, int) { return scale; }, queries(), row, row_of(tensors.dq, chunk_of(tensors.dq, tensors.problem, own.head), own.t),
        static_cast<int>(tensors.dq.row), tensors.bounds.queries - own.t, add);
  }
};

HOST void query_gradient(const BackwardTensors& tensors, Device device) {
  if (wgmma_takes(tensors.problem, device)) return wgmma_query_gradient(tensors, device);
  launch_flash<QueryGradientKernel, 32, 64, 96, 128>("attention' dq", device, tensors.problem, tensors.k == tensors.v, tensors);
}

}  // namespace flash
}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_FLASH(QueryGradientKernel);

}  // namespace ricci
