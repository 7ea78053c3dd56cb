// Computes dk and dv in bf16 on tensor cores (formulas in backward.h): a thread block has 128 keys of one head, 32 or 16 per warp, and
// loops over the queries that see them, 32 at a time. If query heads share the keys, the block processes these heads one after another.
// Scores are transposed (keys are rows), so they and their gradients have the layout of a left operand and never leave the registers. Keys
// that are also the values, as with a metric, are copied once and have one gradient, in half of the registers:
// sum_t (m_tj p_tj dy_t + z ds_tj q_t). GPUs with wgmma use wgmma/backward.cu for widths 64 and 128, unless query heads share keys.
//
// With N = b n c queries of width k, and N keys:
//   bytes   12 N k read and written (q, k, v, dy, dk, dv, once) + 8 N of lse and delta; queries and dy read again from L2, c / 128 times
//   FLOPs   8 N c k, half of it when causal; exponentials N c, half of it when causal
#include "ops/attention/flash/backward.h"
#include "ops/attention/flash/flash.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping, bool keys_are_values> struct KeyGradientKernel {
  static constexpr int kKeys = 128, kQueries = 64, kPart = 32, kPartTiles = kPart / 8;
  static constexpr int kTiles = kWidth <= (dropping ? 32 : 64) ? 2 : 1, kThreads = kKeys / (16 * kTiles) * 32;  // limited by registers
  static constexpr int kOwn = keys_are_values ? kKeys : 2 * kKeys, kGradients = keys_are_values ? 1 : 2;
  static constexpr int kSums = (kOwn + 4 * kQueries) * Tile<kWidth>::kRowBytes, kBytes = kSums + 4 * kQueries * 4;
  static_assert(keys_are_values || kBytes == flash_shared_bytes(kWidth));
  using LeftRows = ReadRows<kTiles, kWidth>;
  using Scores = float[kTiles][kPartTiles][4];

  BackwardTensors tensors;

  struct Sources {  // the first q, dy, lse and delta of a head
    int q_chunk, dy_chunk, sums;
    __device__ Sources(const BackwardTensors& tensors, int head)
        : q_chunk(chunk_of(tensors.q, tensors.problem, head)),
          dy_chunk(chunk_of(tensors.dy, tensors.problem, head)),
          sums(head * tensors.bounds.queries) {}
  };
  struct WarpState {
    int head, j;  // the warp's first key
    LeftRows k, v;
    float gradients[kGradients][kTiles][kWidth / 8][4];  // for the keys, then for the values
  };

  HD int blocks() const { return blocks_of<kKeys>(tensors.problem.keys); }
  __device__ static Tile<kWidth> keys() { return {dynamic_shared<bf16>()}; }
  __device__ static Tile<kWidth> values() { return keys().after(kOwn - kKeys); }
  __device__ static Tile<kWidth> queries(int stage) { return keys().after(kOwn + 2 * kQueries * stage); }
  __device__ static Tile<kWidth> gradients(int stage) { return queries(stage).after(kQueries); }
  // A stage's sums: kQueries numbers of lse, then kQueries of delta.
  __device__ static float* sums(int stage) { return dynamic_shared<float>() + kSums / 4 + 2 * kQueries * stage; }

  __device__ void operator()() const {
    const Problem& problem = tensors.problem;
    const Place place(problem.of_key_heads(), problem.queries, blocks(), false);
    const int group = static_cast<int>(problem.group), head = place.head * group, end_head = head + group;
    const Visible visible(tensors.bounds, problem, head);
    const int j0 = place.block * kKeys, row = warp() * 16 * kTiles;
    begin_rows<kKeys, kThreads>(keys(), tensors.k, chunk_of(tensors.k, problem, head), j0, visible.keys);
    if constexpr (!keys_are_values) begin_rows<kKeys, kThreads>(values(), tensors.v, chunk_of(tensors.v, problem, head), j0, visible.keys);
    ptx::cp_async_commit();
    Sources from(tensors, head);
    const int first = visible.first_query(j0) / kQueries * kQueries, end = visible.end_query(j0, j0 + kKeys);
    if (first < end) begin_queries(from, first, 0);
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    __syncthreads();
    WarpState own{head, j0 + row, LeftRows(keys(), row), LeftRows(values(), row), {}};
    UNROLL(1)
    for (int t0 = first, stage = 0; t0 < end; stage ^= 1) {
      ptx::cp_async_wait_all();
      __syncthreads();  // this stage has arrived; the other stage has been read
      const bool is_last = t0 + kQueries >= end, ends = is_last && own.head + 1 == end_head;
      const int next = is_last ? first : t0 + kQueries;
      if (is_last && !ends) from = Sources(tensors, own.head + 1);
      if (!ends) begin_queries(from, next, stage ^ 1);
      UNROLL(1)
      for (int part = 0; part < kQueries; part += kPart) add_queries(visible, t0, part, stage, own);
      own.head += is_last && !ends ? 1 : 0;
      t0 = ends ? end : next;
    }
    store(own, row);
  }

  // Starts to load queries. Rows after the last query become zeros: p = 1 is multiplied by dy = 0, and ds = 0.
  __device__ void begin_queries(const Sources& from, int t0, int stage) const {
    const int rows = tensors.bounds.queries - t0, i = static_cast<int>(threadIdx.x) % kQueries;
    begin_rows<kQueries, kThreads>(queries(stage), tensors.q, from.q_chunk, t0, tensors.bounds.queries);
    begin_rows<kQueries, kThreads>(gradients(stage), tensors.dy, from.dy_chunk, t0, tensors.bounds.queries);
    if (threadIdx.x < 2 * kQueries)
      ptx::cp_async<4>(
          sums(stage) + threadIdx.x, (threadIdx.x < kQueries ? tensors.lse : tensors.delta) + from.sums + t0 + i, i < rows ? 4 : 0);
  }

  __device__ void add_queries(const Visible& visible, int t0, int part, int stage, WarpState& own) const {
    const int t = t0 + part, j1 = own.j + 16 * kTiles;
    if (visible.none(t, t + kPart, own.j, j1)) return;
    Scores p = {}, ds = {};
    add_scores(p, own.k, queries(stage), part);
    add_scores(ds, own.v, gradients(stage), part);
    weigh_keys(tensors, sums(stage) + part, p);
    if (!visible.all(t, t + kPart, own.j, j1)) hide_queries(visible, t, own.j, p);
    const Kept kept(tensors.problem, own.head);
    differentiate_keys<dropping, keys_are_values>(
        tensors, [&](int i, int x) { return kept.of_keys(t + 8 * x, own.j + 16 * i); }, sums(stage) + kQueries + part, p, ds);
    add_weighted<kTiles, kWidth>(own.gradients[kGradients - 1], p, gradients(stage), part);
    add_weighted<kTiles, kWidth>(own.gradients[0], ds, queries(stage), part);
  }

  // Stores the gradients, with zeros for padding.
  __device__ void store(WarpState& own, int row) const {
    if constexpr (!keys_are_values) store(own.gradients[0], tensors.dk, static_cast<float>(tensors.problem.score_scale), keys(), row, own);
    store(own.gradients[kGradients - 1], tensors.dv, 1, values(), row, own);
  }
  __device__ void store(const float (&gradient)[kTiles][kWidth / 8][4], const HeadRows<bf16>& target, float factor, const Tile<kWidth>& by,
      int row, const WarpState& own) const {
    store_rows<kTiles, kWidth>(
        gradient, [&](int, int) { return factor; }, by, row, row_of(target, chunk_of(target, tensors.problem, own.head), own.j),
        static_cast<int>(target.row), tensors.bounds.keys - own.j);
  }
};

HOST void key_gradient(const BackwardTensors& tensors, Device device) {
  if (tensors.problem.group == 1 && wgmma_takes(tensors.problem, device)) return wgmma_key_gradient(tensors, device);
  launch_flash<KeyGradientKernel, 32, 64, 96, 128>(
      "attention' dk dv", device, tensors.problem.of_key_heads(), tensors.dk == tensors.dv, tensors);
}

}  // namespace flash
}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_FLASH(KeyGradientKernel);

}  // namespace ricci
