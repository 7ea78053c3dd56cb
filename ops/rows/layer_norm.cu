// layer norm over the last index, and the same after a residual sum.
//   n_rd  = (x_rd - mean_r) rstd_r            mean_r = sum_d x_rd / d,  rstd_r = 1 / sqrt(sum_d (x_rd - mean_r)^2 / d + eps)
//   y_rd  = gain_d n_rd + bias_d
//   dx_rd = rstd_r (g_rd - sum_d g_rd / d - n_rd sum_d (g_rd n_rd) / d),   g_rd = gain_d dy_rd
//   dgain_d = sum_r dy_rd n_rd,   dbias_d = sum_r dy_rd
// residual: s_rd = x_rd + branch_rd, y = layer_norm(s); dx = dbranch = ds + layer_norm'(dy)
#include "ops/rows/layer_norm.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "core/view.h"
#include "cuda/math.h"
#include "cuda/verbs/columns.h"
#include "cuda/verbs/rows.h"
#include "ops/rows/layer_norm_pieces.h"

namespace ricci {
namespace layer_norm_kernels {

template <class T> struct Forward {
  using A = Accumulator<T>;
  View<const T, 2> x_rd, branch_rd;  // branch_rd.data is null: no residual
  const T *gain_d, *bias_d;          // bias_d is null: no bias
  View<T, 2> s_rd, y_rd;
  A *mean_r, *rstd_r;
  A eps;

  template <class Row> HD void operator()(int64_t r, Row row) const {
    if (branch_rd.data) row.each([&](int64_t d) { s_rd(r, d) = T(A(x_rd(r, d)) + A(branch_rd(r, d))); });
    const T* s_d = branch_rd.data ? &s_rd(r, 0) : &x_rd(r, 0);
    const A mean = row.sum([&](int64_t d) { return A(s_d[d]); }) / A(row.n);
    const A variance = row.sum([&](int64_t d) { return (A(s_d[d]) - mean) * (A(s_d[d]) - mean); }) / A(row.n);
    const A rstd = 1 / math::sqrt(variance + eps);
    if (bias_d) row.each([&](int64_t d) { y_rd(r, d) = T((A(s_d[d]) - mean) * rstd * A(gain_d[d]) + A(bias_d[d])); });
    else row.each([&](int64_t d) { y_rd(r, d) = T((A(s_d[d]) - mean) * rstd * A(gain_d[d])); });
    row.once([&] {
      mean_r[r] = mean;
      rstd_r[r] = rstd;
    });
  }
};

template <class T> struct BackwardInput {
  using A = Accumulator<T>;
  View<const T, 2> dy_rd, ds_rd, s_rd;  // ds_rd.data is null: no residual
  const T* gain_d;
  const A *mean_r, *rstd_r;
  View<T, 2> dx_rd;

  template <class Row> HD void operator()(int64_t r, Row row) const {
    const A mean = mean_r[r], rstd = rstd_r[r];
    auto g = [&](int64_t d) { return A(gain_d[d]) * A(dy_rd(r, d)); };
    auto n = [&](int64_t d) { return (A(s_rd(r, d)) - mean) * rstd; };
    const A mean_g = row.sum([&](int64_t d) { return g(d); }) / A(row.n);
    const A mean_gn = row.sum([&](int64_t d) { return g(d) * n(d); }) / A(row.n);
    if (ds_rd.data) row.each([&](int64_t d) { dx_rd(r, d) = T(A(ds_rd(r, d)) + rstd * (g(d) - mean_g - n(d) * mean_gn)); });
    else row.each([&](int64_t d) { dx_rd(r, d) = T(rstd * (g(d) - mean_g - n(d) * mean_gn)); });
  }
};

template <class T> struct BackwardGain {
  using A = Accumulator<T>;
  using Value = A;
  static constexpr int kSums = 2;
  View<const T, 2> dy_rd, s_rd;
  const A *mean_r, *rstd_r;
  A *dgain_d, *dbias_d;  // dbias_d is null: no bias

  HD void add(int64_t r, int64_t d, A (&sum)[2]) const {
    const A dy = A(dy_rd(r, d));
    sum[0] += dy * (A(s_rd(r, d)) - mean_r[r]) * rstd_r[r];
    sum[1] += dy;
  }
  HD void store(int64_t d, const A (&sum)[2]) const {
    dgain_d[d] = sum[0];
    if (dbias_d) dbias_d[d] = sum[1];
  }
};

struct Normed {
  Tensor s, y, mean_r, rstd_r;
};

HOST Normed forward(const char* name, const Tensor& x, const Tensor& branch, const Tensor& gain_d, const Tensor& bias_d, double eps) {
  const int64_t d = gain_d.size(), rows = d ? x.size() / d : 0;
  const Dtype statistics = sums_of(x.dtype());  // for a row's mean and 1/deviation
  Normed out{branch ? like(x) : x.detached(), like(x), like(x, {rows}, statistics), like(x, {rows}, statistics)};
  with_dtype(x, [&]<class T>(T) {
    using A = Accumulator<T>;
    if constexpr (std::is_same_v<T, bf16>)
      if (x.device() != Device::cpu &&
          norm_pieces(name, x.device(),
              {rows, d, x.data<T>(), branch ? branch.data<T>() : nullptr, gain_d.data<T>(), bias_d ? bias_d.data<T>() : nullptr,
                  out.s.data<T>(), out.y.data<T>(), out.mean_r.data<A>(), out.rstd_r.data<A>(), A(eps)}))
        return;
    auto matrix = [&](const Tensor& t) { return View<const T, 2>{t ? t.data<T>() : nullptr, {rows, d}}; };
    const Forward<T> program{matrix(x), matrix(branch), gain_d.data<T>(), bias_d ? bias_d.data<T>() : nullptr, {out.s.data<T>(), {rows, d}},
        {out.y.data<T>(), {rows, d}}, out.mean_r.data<A>(), out.rstd_r.data<A>(), A(eps)};
    for_rows(name, x.device(), rows, d, program);
  });
  return out;
}

struct NormGrads {
  Tensor dx, dgain_d, dbias_d;
};

template <class T>
void backward_rows(const char* name, const Tensor& dy, const Tensor& ds, const Normed& kept, const Tensor& gain_d, const NormGrads& out) {
  using A = Accumulator<T>;
  const int64_t d = gain_d.size(), rows = kept.mean_r.size();
  const Device device = dy.device();
  A* const dbias_d = out.dbias_d ? out.dbias_d.data<A>() : nullptr;
  if constexpr (std::is_same_v<T, bf16>)
    if (device != Device::cpu && norm_pieces_backward(name, device,
                                     {rows, d, dy.data<T>(), ds ? ds.data<T>() : nullptr, kept.s.data<T>(), gain_d.data<T>(),
                                         kept.mean_r.data<A>(), kept.rstd_r.data<A>(), out.dx.data<T>(), out.dgain_d.data<A>(), dbias_d}))
      return;
  auto matrix = [&](const Tensor& t) { return View<const T, 2>{t ? t.data<T>() : nullptr, {rows, d}}; };
  for_rows_and_columns(name, device, rows, d,
      BackwardInput<T>{matrix(dy), matrix(ds), matrix(kept.s), gain_d.data<T>(), kept.mean_r.data<A>(), kept.rstd_r.data<A>(),
          {out.dx.data<T>(), {rows, d}}},
      BackwardGain<T>{matrix(dy), matrix(kept.s), kept.mean_r.data<A>(), kept.rstd_r.data<A>(), out.dgain_d.data<A>(), dbias_d});
}

HOST NormGrads backward(const char* name, const Tensor& dy, const Tensor& ds, const Normed& kept, const Tensor& gain_d, bool bias) {
  const Dtype sums = sums_of(kept.s.dtype());  // for bf16 in f32: the tape rounds what needs rounding
  NormGrads out{like(kept.s), like(gain_d, gain_d.shape(), sums), bias ? like(gain_d, gain_d.shape(), sums) : Tensor()};
  with_dtype(kept.s, [&]<class T>(T) { backward_rows<T>(name, dy, ds, kept, gain_d, out); });
  return out;
}

}  // namespace layer_norm_kernels

using namespace layer_norm_kernels;

HOST Tensor layer_norm(const Arg& x_rd, const Arg& gain_d, const Arg& bias_d, double eps) {
  DIMS(merged(x_rd), gain_d, optional(bias_d));
  const Normed n = forward("layer_norm", x_rd, {}, gain_d, bias_d, eps);
  return record("layer_norm", {x_rd, gain_d, bias_d}, n.y, keep(n.s, n.mean_r, n.rstd_r, gain_d, bool(bias_d)),
      [](const Tensor& dy, const Tensor& s, const Tensor& mean_r, const Tensor& rstd_r, const Tensor& gain_d, bool bias) -> Grads {
        const NormGrads g = backward("layer_norm'", dy, {}, {s, {}, mean_r, rstd_r}, gain_d, bias);
        return {g.dx, g.dgain_d, g.dbias_d};
      });
}

HOST std::array<Tensor, 2> residual_layer_norm(const Arg& x_rd, const Arg& branch_rd, const Arg& gain_d, const Arg& bias_d, double eps) {
  DIMS(merged(x_rd), merged(branch_rd), gain_d, optional(bias_d));
  const Normed n = forward("residual_layer_norm", x_rd, branch_rd, gain_d, bias_d, eps);
  return record("residual_layer_norm", {x_rd, branch_rd, gain_d, bias_d}, std::array{n.s, n.y},
      keep(n.s, n.mean_r, n.rstd_r, gain_d, bool(bias_d)),
      [](const Tensor& ds, const Tensor& dy, const Tensor& s, const Tensor& mean_r, const Tensor& rstd_r, const Tensor& gain_d,
          bool bias) -> Grads {
        const NormGrads g = backward("residual_layer_norm'", dy, ds, {s, {}, mean_r, rstd_r}, gain_d, bias);
        return {g.dx, g.dx, g.dgain_d, g.dbias_d};
      });
}

CUDA_ROWS(Forward);
CUDA_ROWS(BackwardInput);
CUDA_COLUMNS(BackwardGain);

}  // namespace ricci

// With N rows of d numbers of s bytes; on the GPU bf16 rows mostly go to layer_norm_pieces.cu:
//   bytes   forward 2 s N d, backward 3 s N d; 4 s N d each with a residual; on a GPU dgain and dbias read dy and s again (not there)
//   floor   N = 65,536, d = 768 in f32 on an H200, with a residual: 0.81 GB at 4.8 TB/s 0.17 ms each way
