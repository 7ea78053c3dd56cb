// The forward pass in bf16 on tensor cores (Dao 2023, FlashAttention-2). A thread block has 128 queries of one head, 32 per warp, and loops
// over the keys they see, 64 or 32 at a time. For each query, the block keeps a number m near the largest score so far (see
// Softmax::weigh), and the sums l and o so far. With z = log2(e) times the factor of the scores (the hardware has exp2 and no exp),
//   s = q k^T,   o and l are multiplied by 2^((m - m') z) when m becomes m',   p = 2^((s - m) z),   l = l + sum_j p,   o = o + p v
// and at the end y = o / l, lse = m z / log2(e) + log l. Scores and weights never leave the registers. The next keys and values are copied
// while the current ones are used. Only tiles that an edge of the mask crosses need the mask. Keys that are also the values, as with a
// metric, are copied once. GPUs with wgmma use wgmma/forward.cu for widths 64 and 128.
//
// With b sequences, n heads of width k, c queries and c keys, N = b n c:
//   bytes   8 N k read and written (q, k, v, y, once) + 4 N of lse; keys and values read again from L2, c / 128 times
//   FLOPs   4 N c k, half of it when causal; exponentials N c, half of it when causal
#include "ops/attention/flash/flash.h"
#include "ops/attention/flash/softmax.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping, bool keys_are_values> struct ForwardKernel {
  static constexpr int kQueries = 128, kKeys = 64;
  static constexpr int kTiles = dropping && kWidth > 96 ? 1 : 2, kThreads = kQueries / (16 * kTiles) * 32;  // limited by registers
  static constexpr int kPart = kWidth <= 64 && !dropping ? 64 : 32, kPartTiles = kPart / 8;                 // keys at a time
  static constexpr int kStage = keys_are_values ? kKeys : 2 * kKeys;  // rows of a stage: keys, then values
  static constexpr int kBytes = (kQueries + 2 * kStage) * Tile<kWidth>::kRowBytes;
  using Queries = ChosenRows<kWidth <= 64, kTiles, kWidth>;
  using State = Softmax<kTiles, kPartTiles, kWidth>;

  Problem problem;
  Bounds bounds;
  HeadRows<const bf16> q, k, v;
  HeadRows<bf16> y;
  float* lse;

  HD int blocks() const { return blocks_of<kQueries>(problem.queries); }
  __device__ static Tile<kWidth> queries() { return {dynamic_shared<bf16>()}; }
  __device__ static Tile<kWidth> keys(int stage) { return queries().after(kQueries + kStage * stage); }
  __device__ static Tile<kWidth> values(int stage) { return keys(stage).after(kStage - kKeys); }

  __device__ void operator()() const {
    const Place place(problem, problem.keys, blocks(), true);
    const Visible visible(bounds, problem, place.head);
    const int t0 = place.block * kQueries, row = warp() * 16 * kTiles, t = t0 + row;
    begin_rows<kQueries, kThreads>(queries(), q, chunk_of(q, problem, place.head), t0, bounds.queries);
    ptx::cp_async_commit();
    const int k_chunk = chunk_of(k, problem, place.head), v_chunk = chunk_of(v, problem, place.head);
    const int first = visible.first_key(t0) / kKeys * kKeys, end = visible.end_key(t0 + kQueries);
    if (first < end) begin_keys(k_chunk, v_chunk, first, visible.keys, 0);
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    __syncthreads();
    const Queries warp_queries(queries(), row);
    State state;
    UNROLL(1)
    for (int j0 = first, stage = 0; j0 < end; j0 += kKeys, stage ^= 1) {
      ptx::cp_async_wait_all();
      __syncthreads();  // this stage has arrived; the other stage has been read
      if (j0 + kKeys < end) begin_keys(k_chunk, v_chunk, j0 + kKeys, visible.keys, stage ^ 1);
      UNROLL(1)
      for (int part = 0; part < kKeys; part += kPart) add_keys(visible, warp_queries, place.head, t, j0, part, stage, state);
    }
    state.finish(problem, y, lse + place.head * bounds.queries + t, place.head, t, bounds.queries - t, queries(), row);
  }

  __device__ void add_keys(
      const Visible& visible, const Queries& warp_queries, int head, int t, int j0, int part, int stage, State& state) const {
    if (visible.none(t, t + 16 * kTiles, j0 + part, j0 + part + kPart)) return;
    typename State::Scores s = {};
    add_scores(s, warp_queries, keys(stage), part);
    if (!visible.all(t, t + 16 * kTiles, j0 + part, j0 + part + kPart)) hide_keys(visible, t, j0 + part, s, State::kLowest);
    state.weigh(s, static_cast<float>(problem.score_scale) * kLog2E);
    if constexpr (dropping) State::drop(problem, head, t, j0 + part, s);
    add_weighted<kTiles, kWidth>(state.o, s, values(stage), part);
  }

  __device__ void begin_keys(int k_chunk, int v_chunk, int j0, int keys_of_head, int stage) const {
    begin_rows<kKeys, kThreads>(keys(stage), k, k_chunk, j0, keys_of_head);
    if constexpr (!keys_are_values) begin_rows<kKeys, kThreads>(values(stage), v, v_chunk, j0, keys_of_head);
  }
};

}  // namespace flash

HOST void flash_forward(const Problem& problem, const QueryKeyValue& inputs, const Outputs& out) {
  if (wgmma_takes(problem, out.y_bcd.device())) return wgmma_forward(problem, inputs, out);
  const auto q = head_rows<const bf16>(inputs.q), k = head_rows<const bf16>(inputs.k), v = head_rows<const bf16>(inputs.v);
  flash::launch_flash<flash::ForwardKernel, 32, 64, 96, 128>("attention", out.y_bcd.device(), problem, k == v, problem,
      flash::Bounds(problem), q, k, v, head_rows<bf16>({out.y_bcd}), out.lse_bnc.data<float>());
}

}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_FLASH(ForwardKernel);

}  // namespace ricci
