// The forward in bf16 on tensor cores (Dao 2023, FlashAttention-2): a thread block owns 128 queries of one head, 32 to a warp,
// and goes over the keys they see, 64 or 32 at a time. With a number m near the maximum so far (see weigh), the sum l and the
// output o so far, and z = log2(e) times the scale:
//   s = q k^T,   o and l times 2^((m - m') z) where m becomes m',   p = 2^((s - m) z),   l = l + sum_j p,   o = o + p v
// and at the end y = o / l,  lse = m scale + log l. Scores and weights never leave the registers. The next keys and values are
// copied while these are worked on. Only tiles that an edge of the mask crosses pay for the mask. Keys that are values, as those
// of a metric, are copied once.
//
// With b sequences, n heads of width k, c queries and as many keys, N = b n c:
//   bytes   8 N k read and written (q, k, v, y, once) + 4 N of lse; keys and values again from L2, c / 128 times
//   FLOPs   4 N c k, half of it when causal; exponentials N c, half of it when causal
//   floor   k = 64, causal, b n = 768, c = 1024 on an H200: 403 MB at 4.8 TB/s 0.08 ms; 103 GFLOP at 989 TFLOP/s 0.10 ms
#include "cuda/math.h"
#include "cuda/verbs/reduce.h"
#include "ops/attention/flash/flash.h"
#include "ops/attention/flash/launch.h"
#include "ops/attention/flash/mask.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping, bool keys_are_values> struct ForwardKernel {
  static constexpr int kQueries = 128, kKeys = 64;
  static constexpr int kTiles = dropping && kWidth > 96 ? 1 : 2, kThreads = kQueries / (16 * kTiles) * 32;  // as the registers allow
  static constexpr int kPart = kWidth <= 64 && !dropping ? 64 : 32, kPartTiles = kPart / 8;                 // keys at once
  static constexpr int kStage = keys_are_values ? kKeys : 2 * kKeys;  // rows of a stage: keys, then values
  static constexpr int kBytes = (kQueries + 2 * kStage) * Tile<kWidth>::kRowBytes;
  static constexpr float kLowest = -__builtin_huge_valf(), kSlack = 8;
  using Queries = ChosenRows<kWidth <= 64, kTiles, kWidth>;
  using Scores = float[kTiles][kPartTiles][4];

  Problem problem;
  Bounds bounds;
  HeadRows<const bf16> q, k, v;
  HeadRows<bf16> y;
  float* lse;

  struct State {
    float m[kTiles][2], l[kTiles][2], o[kTiles][kWidth / 8][4];  // l is the sum over this lane's columns
  };

  HD int blocks() const { return blocks_of<kQueries>(problem.queries); }
  __device__ static Tile<kWidth> queries() { return {dynamic_shared<bf16>()}; }
  __device__ static Tile<kWidth> keys(int stage) { return queries().after(kQueries + kStage * stage); }
  __device__ static Tile<kWidth> values(int stage) { return keys(stage).after(kStage - kKeys); }

  __device__ void operator()() const {
    const Place at(problem, problem.keys, blocks(), true);
    const Visible visible(bounds, problem, at.head);
    const int t0 = at.block * kQueries, row = warp() * 16 * kTiles, t = t0 + row;
    begin_rows<kQueries, kThreads>(queries(), q, chunk_of(q, problem, at.head), t0, bounds.queries);
    ptx::cp_async_commit();
    const int k_chunk = chunk_of(k, problem, at.head), v_chunk = chunk_of(v, problem, at.head);
    const int first = visible.first_key(t0) / kKeys * kKeys, end = visible.end_key(t0 + kQueries);
    if (first < end) begin_keys(k_chunk, v_chunk, first, visible.keys, 0);
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    __syncthreads();
    const Queries of_warp(queries(), row);
    State state = empty();
    UNROLL(1)
    for (int j0 = first, stage = 0; j0 < end; j0 += kKeys, stage ^= 1) {
      ptx::cp_async_wait_all();
      __syncthreads();  // these have arrived; those before have been read
      if (j0 + kKeys < end) begin_keys(k_chunk, v_chunk, j0 + kKeys, visible.keys, stage ^ 1);
      UNROLL(1)
      for (int part = 0; part < kKeys; part += kPart) add_keys(visible, of_warp, at.head, t, j0, part, stage, state);
    }
    finish(state, at.head, t, row);
  }

  __device__ void add_keys(
      const Visible& visible, const Queries& of_warp, int head, int t, int j0, int part, int stage, State& state) const {
    if (visible.none(t, t + 16 * kTiles, j0 + part, j0 + part + kPart)) return;
    Scores s = {};
    add_scores(s, of_warp, keys(stage), part);
    if (!visible.all(t, t + 16 * kTiles, j0 + part, j0 + part + kPart)) hide_keys(visible, t, j0 + part, s, kLowest);
    weigh(s, state);
    if constexpr (dropping) drop(head, t, j0 + part, s);
    add_weighted<kTiles, kWidth>(state.o, s, values(stage), part);
  }

  __device__ void begin_keys(int k_chunk, int v_chunk, int j0, int keys_of_head, int stage) const {
    begin_rows<kKeys, kThreads>(keys(stage), k, k_chunk, j0, keys_of_head);
    if constexpr (!keys_are_values) begin_rows<kKeys, kThreads>(values(stage), v, v_chunk, j0, keys_of_head);
  }

  __device__ static State empty() {
    State state;
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        state.m[i][half] = kLowest;
        state.l[i][half] = 0;
      }
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(16)
    for (int x = 0; x < kWidth / 8; ++x)
      for (int e = 0; e < 4; ++e) state.o[i][x][e] = 0;
    return state;
  }

  // Scores become p, and the state is brought up to date. The result does not depend on m as long as p stays within range. So m
  // is moved to the maximum only where p would exceed 2^kSlack, which is rare after the first keys.
  __device__ void weigh(Scores& s, State& state) const {
    const float scale = static_cast<float>(problem.scale) * kLog2E;
    float largest[kTiles][2];
    bool far = false;
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        largest[i][half] = row_largest(s, i, half, state.m[i][half]);
        far = far || (largest[i][half] - state.m[i][half]) * scale > kSlack;
      }
    if (__any_sync(~0u, far)) rescale(largest, scale, state);
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      const float shift = state.m[i][half] > kLowest ? state.m[i][half] * scale : 0.0f;
      float sum = 0;
      UNROLL(16)
      for (int j = 0; j < kPartTiles; ++j)
        for (int e = 2 * half; e < 2 * half + 2; ++e) sum += s[i][j][e] = ptx::exp2_approx(math::fma(s[i][j][e], scale, -shift));
      state.l[i][half] += sum;
    }
  }

  __device__ static float row_largest(const Scores& s, int i, int half, float largest) {
    UNROLL(16)
    for (int j = 0; j < kPartTiles; ++j) largest = larger(larger(s[i][j][2 * half], s[i][j][2 * half + 1]), largest);
    return row_reduce(largest, [](float a, float b) { return larger(a, b); });
  }

  __device__ static void rescale(const float (&largest)[kTiles][2], float scale, State& state) {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        float& m = state.m[i][half];
        const float factor = m > kLowest ? ptx::exp2_approx((m - largest[i][half]) * scale) : 0.0f;
        m = largest[i][half];
        state.l[i][half] *= factor;
        UNROLL(16)
        for (int x = 0; x < kWidth / 8; ++x) {
          state.o[i][x][2 * half] *= factor;
          state.o[i][x][2 * half + 1] *= factor;
        }
      }
  }

  // The weights that stay are not divided by 1 - p here: finish does it once for their sum.
  __device__ void drop(int head, int t, int j0, Scores& p) const {
    const Kept kept(problem, head);
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(16)
    for (int x = 0; x < kPartTiles; ++x) {
      const unsigned bits = kept.of_queries(t + 16 * i, j0 + 8 * x);
      for (int e = 0; e < 4; ++e) p[i][x][e] = bits >> e & 1 ? p[i][x][e] : 0.0f;
    }
  }

  // A query that sees no key has l = 0: its output is 0 and, with an infinite lse, p = 0 in the backward.
  __device__ void finish(State& state, int head, int t, int row) const {
    const int rows = bounds.queries - t;
    float* const to = lse + head * bounds.queries + t;
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        const int r = 16 * i + 8 * half + lane_row();
        float& l = state.l[i][half];
        l = row_reduce(l, Sum{});
        if (lane_column() == 0 && r < rows) to[r] = l == 0 ? -kLowest : state.m[i][half] * static_cast<float>(problem.scale) + math::log(l);
        const float scale = dropping ? static_cast<float>(problem.dropout.scale) : 1.0f;
        l = l == 0 ? 0.0f : scale / l;
      }
    store_rows<kTiles, kWidth>(
        state.o, [&](int i, int half) { return state.l[i][half]; }, queries(), row, row_of(y, chunk_of(y, problem, head), t),
        static_cast<int>(y.row), rows);
  }
};

}  // namespace flash

HOST void flash_forward(const Problem& problem, const Views& in, const Outputs& out) {
  const auto q = head_rows<const bf16>(in.q), k = head_rows<const bf16>(in.k), v = head_rows<const bf16>(in.v);
  flash::launch_flash<flash::ForwardKernel>("attention", out.y_bcd.device(), problem, k == v, problem, flash::Bounds(problem), q, k, v,
      head_rows<bf16>({out.y_bcd}), out.lse_bnc.data<float>());
}

}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_FLASH(ForwardKernel);

}  // namespace ricci
