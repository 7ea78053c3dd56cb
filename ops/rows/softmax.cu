// softmax over the last index:   p_rc = e_rc / sum_c e_rc,   e_rc = exp(x_rc - max_c x_rc)
//                               dx_rc = p_rc (dp_rc - sum_c dp_rc p_rc)
// The maximum is subtracted to prevent overflow: exp(89) is infinite in f32. It cancels in the quotient. Backward: each x is in the sum of
// its row, so a larger x_c raises p_c and lowers the others. Therefore dx_c is p_c times the difference of dp_c and the mean of dp over the
// row, weighted by p.
//   bytes   forward reads x and writes p, 8 n for n numbers in f32; backward reads p and dp and writes dx, 12 n
#include "ops/rows/softmax.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/view.h"
#include "cuda/math.h"
#include "cuda/verbs/rows.h"

namespace ricci {
namespace softmax_kernels {

template <class T> struct Forward {
  using A = Accumulator<T>;
  View<const T, 2> x_rc;
  View<A, 2> e_rc;  // p_rc itself, except for bf16: bf16 would round e before the division
  View<T, 2> p_rc;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const A largest = row.max([&](int64_t c) { return A(x_rc(r, c)); });
    const A sum = row.sum([&](int64_t c) { return e_rc(r, c) = math::exp(A(x_rc(r, c)) - largest); });
    row.each([&](int64_t c) { p_rc(r, c) = T(e_rc(r, c) / sum); });
  }
};

template <class T> struct Backward {
  using A = Accumulator<T>;
  View<const T, 2> dp_rc, p_rc;
  View<T, 2> dx_rc;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const A dot = row.sum([&](int64_t c) { return A(dp_rc(r, c)) * A(p_rc(r, c)); });
    row.each([&](int64_t c) { dx_rc(r, c) = T(A(p_rc(r, c)) * (A(dp_rc(r, c)) - dot)); });
  }
};

}  // namespace softmax_kernels

using namespace softmax_kernels;

HOST Tensor softmax(const Arg& x) {
  DIMS(x);
  if (x.shape().rank() == 0) fail("softmax: expected at least one index, got []");
  const Dtype sums = sums_of(x.dtype());
  const Tensor p = like(x), e = sums == x.dtype() ? p : like(x, x.shape(), sums);
  const int64_t n = x.shape()[-1], rows = n ? x.size() / n : 0;
  with_dtype(x, [&]<class T>(T) {
    for_rows("softmax", x.device(), rows, n, Forward<T>{view<const T, 2>(x), view<Accumulator<T>, 2>(e), view<T, 2>(p)});
  });
  return record("softmax", {x}, p, keep(p), [](const Tensor& dp, const Tensor& p) -> Grads {
    const Tensor dx = like(p);
    const int64_t n = p.shape()[-1], rows = n ? p.size() / n : 0;
    with_dtype(p, [&]<class T>(T) {
      for_rows("softmax'", p.device(), rows, n, Backward<T>{view<const T, 2>(dp), view<const T, 2>(p), view<T, 2>(dx)});
    });
    return {dx};
  });
}

CUDA_ROWS(Forward);
CUDA_ROWS(Backward);

}  // namespace ricci
