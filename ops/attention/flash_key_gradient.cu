// dk and dv in bf16 on tensor cores (the formulas are in flash_backward.h): a thread block owns 128 keys of one (batch, head),
// 32 or 16 to a warp, and goes over the queries that see them, 32 at a time. Scores are computed transposed, rows are keys, so
// that they and their gradients are left operands as they stand and never leave the registers.
//
// With N = b n c rows of width k:
//   bytes   12 N k read and written (q, k, v, dy, dk, dv, once) + 8 N of lse and delta; queries and dy again from L2, c / 128 times
//   FLOPs   8 N c k, half of it when causal; exponentials N c, half of it when causal
//   floor   k = 64, causal, b n = 768, c = 1024 on an H200: 610 MB at 4.8 TB/s 0.13 ms; 206 GFLOP at 989 TFLOP/s 0.21 ms
#include "cuda/math.h"
#include "ops/attention/flash.h"
#include "ops/attention/flash_backward.h"
#include "ops/attention/flash_launch.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

template <int kWidth, bool dropping> struct KeyGradientKernel {
  static constexpr int kKeys = 128, kQueries = 64, kPart = 32, kPartTiles = kPart / 8;
  static constexpr int kTiles = kWidth <= (dropping ? 32 : 64) ? 2 : 1, kThreads = kKeys / (16 * kTiles) * 32;  // as the registers allow
  static constexpr int kSums = (2 * kKeys + 4 * kQueries) * Tile<kWidth>::kRowBytes, kBytes = kSums + 4 * kQueries * 4;
  static_assert(kBytes == flash_shared_bytes(kWidth));
  using Rows = ReadRows<kTiles, kWidth>;
  using Scores = float[kTiles][kPartTiles][4];

  BackwardInputs in;
  bf16* dqkv;

  struct Sources {  // of a (batch, head), from its first query
    const bf16 *q, *dy;
    int sums;
  };
  struct OfWarp {
    int head, s;  // its first key
    Rows k, v;
    float dk[kTiles][kWidth / 8][4], dv[kTiles][kWidth / 8][4];
  };

  HD int d() const { return static_cast<int>(in.problem.heads) * kWidth; }
  HD int blocks() const { return blocks_of(in.problem, kKeys); }
  __device__ static Tile<kWidth> keys() { return {dynamic_shared<bf16>()}; }
  __device__ static Tile<kWidth> values() { return keys().after(kKeys); }
  __device__ static Tile<kWidth> queries(int stage) { return keys().after(2 * kKeys + 2 * kQueries * stage); }
  __device__ static Tile<kWidth> gradients(int stage) { return queries(stage).after(kQueries); }
  // kQueries of lse, then as many of delta.
  __device__ static float* sums(int stage) { return dynamic_shared<float>() + kSums / 4 + 2 * kQueries * stage; }

  __device__ void operator()() const {
    const Place at(in.problem, blocks(), false);
    const Visible visible(in.bounds, in.problem, at.head);
    const int s0 = at.block * kKeys, row = warp() * 16 * kTiles, pitch = 3 * d();
    const Sources from{in.qkv + in.problem.packed(at.head), in.dy + in.problem.merged(at.head), at.head * in.bounds.queries};
    const bf16* const k = from.q + int64_t{s0} * pitch + d();
    begin_load<kKeys, kThreads>(keys(), k, pitch, visible.keys - s0);
    begin_load<kKeys, kThreads>(values(), k + d(), pitch, visible.keys - s0);
    ptx::cp_async_commit();
    const int first = visible.first_query(s0) / kQueries * kQueries, end = visible.end_query(s0, s0 + kKeys);
    if (first < end) begin_queries(from, first, 0);
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    __syncthreads();
    OfWarp of{at.head, s0 + row, Rows(keys(), row), Rows(values(), row), {}, {}};
    UNROLL(1)
    for (int t0 = first, stage = 0; t0 < end; t0 += kQueries, stage ^= 1) {
      ptx::cp_async_wait_all();
      __syncthreads();  // these have arrived; those before have been read
      if (t0 + kQueries < end) begin_queries(from, t0 + kQueries, stage ^ 1);
      UNROLL(1)
      for (int part = 0; part < kQueries; part += kPart) add_queries(visible, t0, part, stage, of);
    }
    const float scale = static_cast<float>(in.problem.scale);
    bf16* const dk = dqkv + in.problem.packed(at.head) + int64_t{of.s} * pitch + d();
    const int rows = in.bounds.queries - of.s;  // padding has gradients too: zero
    store_rows<kTiles, kWidth>(
        of.dk, [&](int, int) { return scale; }, keys(), row, dk, pitch, rows);
    store_rows<kTiles, kWidth>(
        of.dv, [](int, int) { return 1.0f; }, values(), row, dk + d(), pitch, rows);
  }

  // Of queries beyond the last all is zero: p = 1 meets dy = 0, and ds = 0.
  __device__ void begin_queries(const Sources& from, int t0, int stage) const {
    const int rows = static_cast<int>(in.problem.context) - t0, i = static_cast<int>(threadIdx.x) % kQueries;
    begin_load<kQueries, kThreads>(queries(stage), from.q + int64_t{t0} * (3 * d()), 3 * d(), rows);
    begin_load<kQueries, kThreads>(gradients(stage), from.dy + int64_t{t0} * d(), d(), rows);
    if (threadIdx.x < 2 * kQueries)
      ptx::cp_async<4>(sums(stage) + threadIdx.x, (threadIdx.x < kQueries ? in.lse : in.delta) + from.sums + t0 + i, i < rows ? 4 : 0);
  }

  __device__ void add_queries(const Visible& visible, int t0, int part, int stage, OfWarp& of) const {
    const int t = t0 + part, s1 = of.s + 16 * kTiles;
    if (visible.none(t, t + kPart, of.s, s1)) return;
    Scores p = {}, ds = {};
    add_scores(p, of.k, queries(stage), part);
    add_scores(ds, of.v, gradients(stage), part);
    weigh(sums(stage) + part, p);
    if (!visible.all(t, t + kPart, of.s, s1)) hide(visible, t, of.s, p);
    differentiate(of, t, sums(stage) + kQueries + part, p, ds);
    add_weighted<kTiles, kWidth>(of.dv, p, gradients(stage), part);
    add_weighted<kTiles, kWidth>(of.dk, ds, queries(stage), part);
  }

  __device__ void weigh(const float* lse, Scores& p) const {
    const float scale = static_cast<float>(in.problem.scale) * kLog2E;
    UNROLL(16)
    for (int j = 0; j < kPartTiles; ++j) {
      const float2 of_queries = *reinterpret_cast<const float2*>(lse + 8 * j + lane_column());
      const float shift[2] = {-kLog2E * of_queries.x, -kLog2E * of_queries.y};
      UNROLL(4)
      for (int i = 0; i < kTiles; ++i)
        for (int e = 0; e < 4; ++e) p[i][j][e] = ptx::exp2_approx(math::fma(p[i][j][e], scale, shift[e % 2]));
    }
  }

  __device__ static void hide(const Visible& visible, int t0, int s0, Scores& p) {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        const int s = s0 + 16 * i + 8 * half + lane_row();
        hide_outside(p, i, half, visible.first_query(s) - t0, visible.end_query(s, s + 1) - t0, 0.0f);
      }
  }

  // ds, from v . dy in its place, and p becomes what dropout leaves of it.
  __device__ void differentiate(const OfWarp& of, int t, const float* delta, Scores& p, Scores& ds) const {
    const float scale = static_cast<float>(in.problem.dropout.scale);
    const Kept kept(in.problem, of.head);
    UNROLL(16)
    for (int j = 0; j < kPartTiles; ++j) {
      const float2 of_queries = *reinterpret_cast<const float2*>(delta + 8 * j + lane_column());
      const float subtracted[2] = {of_queries.x, of_queries.y};
      UNROLL(4)
      for (int i = 0; i < kTiles; ++i) {
        const unsigned bits = dropping ? kept.of_keys(t + 8 * j, of.s + 16 * i) : 0;
        for (int e = 0; e < 4; ++e) {
          const float factor = !dropping ? 1.0f : bits >> e & 1 ? scale : 0.0f;
          ds[i][j][e] = p[i][j][e] * (ds[i][j][e] * factor - subtracted[e % 2]);
          p[i][j][e] *= factor;
        }
      }
    }
  }
};

HOST void key_gradient(const BackwardInputs& in, const Tensor& dqkv) {
  launch_flash<KeyGradientKernel>("attention' dk dv", dqkv.device(), in.problem, in, dqkv.data<bf16>());
}

}  // namespace flash
}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_FLASH(KeyGradientKernel);

}  // namespace ricci
