// 12. A gradient that is wrong by 1%.
//   y = x s,   s = 1 / (1 + exp(-x))   (the function is called silu)
// A model with a slightly wrong gradient still learns, only worse, and no loss curve shows why. Central differences show the error: the
// gradient is compared with (f(x + h) - f(x - h)) / 2h in f64, element by element.
// Task: find the mistake in the slope. The product rule gives dy/dx = s + x s (1 - s).
// Unsolved: check_gradients: on cpu, input 0, element 14: -0.117666144 by differences, -0.12494516 by backward
#include "apps/tour/puzzle.h"
#include "autograd/gradcheck.h"
#include "autograd/record.h"
#include "cuda/math.h"
#include "cuda/verbs/elements.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct Silu {
  const double* x;
  double* y;
  HD void operator()(int64_t i) const { y[i] = x[i] / (1 + math::exp(-x[i])); }
};

struct SiluBackward {
  const double *dy, *x;
  double* dx;
  HD void operator()(int64_t i) const {
    const double s = 1 / (1 + math::exp(-x[i]));
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/12_one_percent.inc"
#else
    dx[i] = dy[i] * s * (1.01 + x[i] * (1 - s));
#endif
  }
};

Tensor silu(const Arg& x) {
  const Tensor y = like(x);
  for_each_element("silu", x.device(), x.size(), Silu{x.data<double>(), y.data<double>()});
  return record("silu", {x}, y, keep(x), [](const Tensor& dy, const Tensor& x) -> Grads {
    const Tensor dx = like(x);
    for_each_element("silu'", x.device(), x.size(), SiluBackward{dy.data<double>(), x.data<double>(), dx.data<double>()});
    return {dx};
  });
}

PUZZLE(12, "a gradient that is wrong by 1%") { check_gradients(silu, randn({20}, 1)); }

}  // namespace
