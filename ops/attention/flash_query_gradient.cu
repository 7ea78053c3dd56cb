// dq in bf16 on tensor cores (the formulas are in flash_backward.h): a thread block owns 128 queries of one (batch, head), 32
// or 16 to a warp, and goes over the keys they see, 32 at a time. Scores and their gradients never leave the registers.
//
// With N = b n c rows of width k:
//   bytes   10 N k read and written (q, k, v, dy, dq, once) + 8 N of lse and delta; keys and values again from L2, c / 128 times
//   FLOPs   6 N c k, half of it when causal; exponentials N c, half of it when causal
//   floor   k = 64, causal, b n = 768, c = 1024 on an H200: 510 MB at 4.8 TB/s 0.11 ms; 155 GFLOP at 989 TFLOP/s 0.16 ms
#include "cuda/math.h"
#include "ops/attention/flash_backward.h"
#include "ops/attention/flash_launch.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping> struct QueryGradientKernel {
  static constexpr int kQueries = 128, kKeys = 64, kPart = 32, kPartTiles = kPart / 8;
  static constexpr int kTiles = kWidth <= (dropping ? 32 : 96) ? 2 : 1, kThreads = kQueries / (16 * kTiles) * 32;  // as the registers allow
  static constexpr int kBytes = (2 * kQueries + 4 * kKeys) * Tile<kWidth>::kRowBytes;
  using Rows = ChosenRows<kWidth <= 64 || kTiles == 1, kTiles, kWidth>;
  using Scores = float[kTiles][kPartTiles][4];

  BackwardInputs in;
  bf16* dqkv;

  struct OfWarp {
    int head, t;
    Rows q, dy;
    float lse[kTiles][2], delta[kTiles][2];  // lse in powers of 2
  };

  HD int d() const { return static_cast<int>(in.problem.heads) * kWidth; }
  HD int blocks() const { return blocks_of(in.problem, kQueries); }
  __device__ static Tile<kWidth> queries() { return {dynamic_shared<bf16>()}; }
  __device__ static Tile<kWidth> gradients() { return queries().after(kQueries); }
  __device__ static Tile<kWidth> keys(int stage) { return queries().after(2 * kQueries + 2 * kKeys * stage); }
  __device__ static Tile<kWidth> values(int stage) { return keys(stage).after(kKeys); }

  __device__ void operator()() const {
    const Place at(in.problem, blocks(), true);
    const Visible visible(in.bounds, in.problem, at.head);
    const int t0 = at.block * kQueries, row = warp() * 16 * kTiles, t = t0 + row;
    const bf16* const q = in.qkv + in.problem.packed(at.head);
    begin_load<kQueries, kThreads>(queries(), q + int64_t{t0} * (3 * d()), 3 * d(), in.bounds.queries - t0);
    begin_load<kQueries, kThreads>(gradients(), in.dy + in.problem.merged(at.head) + int64_t{t0} * d(), d(), in.bounds.queries - t0);
    ptx::cp_async_commit();
    const int first = visible.first_key(t0) / kKeys * kKeys, end = visible.end_key(t0 + kQueries);
    if (first < end) begin_keys(q, first, visible.keys, 0);
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    __syncthreads();
    OfWarp of{at.head, t, Rows(queries(), row), Rows(gradients(), row), {}, {}};
    load_sums(of);
    float dq[kTiles][kWidth / 8][4] = {};
    UNROLL(1)
    for (int s0 = first, stage = 0; s0 < end; s0 += kKeys, stage ^= 1) {
      ptx::cp_async_wait_all();
      __syncthreads();  // these have arrived; those before have been read
      if (s0 + kKeys < end) begin_keys(q, s0 + kKeys, visible.keys, stage ^ 1);
      UNROLL(1)
      for (int part = 0; part < kKeys; part += kPart) add_keys(visible, of, s0, part, stage, dq);
    }
    const float scale = static_cast<float>(in.problem.scale);
    store_rows<kTiles, kWidth>(
        dq, [&](int, int) { return scale; }, queries(), row, dqkv + in.problem.packed(at.head) + int64_t{t} * (3 * d()), 3 * d(),
        in.bounds.queries - t);
  }

  __device__ void begin_keys(const bf16* q, int s0, int keys_of_head, int stage) const {
    const bf16* const from = q + int64_t{s0} * (3 * d()) + d();
    begin_load<kKeys, kThreads>(keys(stage), from, 3 * d(), keys_of_head - s0);
    begin_load<kKeys, kThreads>(values(stage), from + d(), 3 * d(), keys_of_head - s0);
  }

  // Of queries beyond the last all is zero: p = 1 and ds = 0.
  __device__ void load_sums(OfWarp& of) const {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        const int t = of.t + 16 * i + 8 * half + lane_row();
        const int at = of.head * in.bounds.queries + t;
        of.lse[i][half] = t < in.bounds.queries ? in.lse[at] * kLog2E : 0.0f;
        of.delta[i][half] = t < in.bounds.queries ? in.delta[at] : 0.0f;
      }
  }

  __device__ void add_keys(const Visible& visible, const OfWarp& of, int s0, int part, int stage,
                           float (&dq)[kTiles][kWidth / 8][4]) const {
    const int s = s0 + part, t1 = of.t + 16 * kTiles;
    if (visible.none(of.t, t1, s, s + kPart)) return;
    Scores p = {}, ds = {};
    add_scores(p, of.q, keys(stage), part);
    add_scores(ds, of.dy, values(stage), part);
    weigh(of, p);
    if (!visible.all(of.t, t1, s, s + kPart)) hide_keys(visible, of.t, s, p, 0.0f);
    differentiate(of, s, p, ds);
    add_weighted<kTiles, kWidth>(dq, ds, keys(stage), part);
  }

  __device__ void weigh(const OfWarp& of, Scores& p) const {
    const float scale = static_cast<float>(in.problem.scale) * kLog2E;
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(16)
    for (int j = 0; j < kPartTiles; ++j)
      for (int e = 0; e < 4; ++e) p[i][j][e] = ptx::exp2_approx(math::fma(p[i][j][e], scale, -of.lse[i][e / 2]));
  }

  // ds, from dy . v in its place.
  __device__ void differentiate(const OfWarp& of, int s, const Scores& p, Scores& ds) const {
    const float scale = static_cast<float>(in.problem.dropout.scale);
    const Kept kept(in.problem, of.head);
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(16)
    for (int j = 0; j < kPartTiles; ++j) {
      const unsigned bits = dropping ? kept.of_queries(of.t + 16 * i, s + 8 * j) : 0;
      for (int e = 0; e < 4; ++e) {
        if (dropping) ds[i][j][e] = bits >> e & 1 ? ds[i][j][e] * scale : 0.0f;
        ds[i][j][e] = p[i][j][e] * (ds[i][j][e] - of.delta[i][e / 2]);
      }
    }
  }
};

HOST void query_gradient(const BackwardInputs& in, const Tensor& dqkv) {
  launch_flash<QueryGradientKernel>("attention' dq", dqkv.device(), in.problem, in, dqkv.data<bf16>());
}

}  // namespace flash
}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_FLASH(QueryGradientKernel);

}  // namespace ricci
