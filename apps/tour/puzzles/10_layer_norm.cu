// 10. The gradient of layer norm.
//   n_d = (x_d - mean) rstd,   rstd = 1 / sqrt(variance + 1e-5)
// The mean and the variance depend on every x of the row, so each dx depends on every dy:
//   dx_d = rstd (dy_d - mean of dy - n_d (mean of dy n))
// The op is recorded on the tape, and check_gradients compares it with central differences, on the CPU and on the emulator.
// A for_rows program is written once for both devices: row.sum(f) adds f(d) over the row, and row.each(f) runs f(d) for each d.
// Task: the two means are missing. Add them.
// Unsolved: check_gradients: on cpu, input 0, element 1: 0.124578864 by differences, 0.992880083 by backward
#include "apps/tour/puzzle.h"
#include "autograd/gradcheck.h"
#include "autograd/record.h"
#include "cuda/math.h"
#include "cuda/verbs/rows.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct Norm {
  const double* x;
  double *n, *rstd_r;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const double* const x_d = x + r * row.n;
    const double mean = row.sum([&](int64_t d) { return x_d[d]; }) / double(row.n);
    const double variance = row.sum([&](int64_t d) { return (x_d[d] - mean) * (x_d[d] - mean); }) / double(row.n);
    const double rstd = 1 / math::sqrt(variance + 1e-5);
    row.each([&](int64_t d) { n[r * row.n + d] = (x_d[d] - mean) * rstd; });
    row.once([&] { rstd_r[r] = rstd; });
  }
};

struct NormBackward {
  const double *dy, *n, *rstd_r;
  double* dx;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const double *const dy_d = dy + r * row.n, *const n_d = n + r * row.n, rstd = rstd_r[r];
    double* const dx_d = dx + r * row.n;
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/10_layer_norm.inc"
#else
    row.each([&](int64_t d) { dx_d[d] = rstd * (dy_d[d] + 0 * n_d[d]); });
#endif
  }
};

Tensor norm(const Arg& x) {
  const int64_t rows = x.shape()[0], width = x.shape()[1];
  const Tensor n = like(x), rstd = like(x, {rows});
  for_rows("norm", x.device(), rows, width, Norm{x.data<double>(), n.data<double>(), rstd.data<double>()});
  return record("norm", {x}, n, keep(n, rstd), [](const Tensor& dy, const Tensor& n, const Tensor& rstd) -> Grads {
    const Tensor dx = like(n);
    for_rows("norm'", n.device(), n.shape()[0], n.shape()[1],
        NormBackward{dy.data<double>(), n.data<double>(), rstd.data<double>(), dx.data<double>()});
    return {dx};
  });
}

PUZZLE(10, "the gradient of layer norm") { check_gradients(norm, randn({3, 7}, 1)); }

}  // namespace
