// y_rf  = x_rd w_fd + bias_f                 r: all indices of x but the innermost
// dx_rd = dy_rf w_fd,   dw_fd = dy_rf x_rd,   dbias_f = sum_r dy_rf
#include "ops/products/linear.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/gemm/gemm.h"
#include "cuda/seam.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace linear_details {

struct Extents {
  int64_t r, d, f;
};

HOST Extents extents(const Tensor& x, const Tensor& w_fd, const Tensor& bias_f) {
  if (x.shape().rank() == 0) fail("linear: x[] has no index d");
  int64_t rows = 1;
  for (int i = 0; i < x.shape().rank() - 1; ++i) rows *= x.shape()[i];
  const Tensor x_rd = x.reshaped({rows, x.shape()[-1]});
  Dims n;
  if (bias_f)
    n.bind("linear", "x_rd, w_fd, bias_f", {&x_rd, &w_fd, &bias_f});
  else
    n.bind("linear", "x_rd, w_fd", {&x_rd, &w_fd});
  return {rows, n['d'], n['f']};
}

HOST void check_together(const Tensor& x, const Tensor& other, const char* name) {
  if (!other || (other.dtype() == x.dtype() && other.device() == x.device())) return;
  fail("linear: x is {} on {}, {} {} on {}", {name_of(x.dtype()), name_of(x.device()), name,
                                              name_of(other.dtype()), name_of(other.device())});
}

HOST Grads backward(const Tensor& dy, const Tensor& x, const Tensor& w_fd, bool bias) {
  const auto [r, d, f] = extents(x, w_fd, {});
  const Tensor dx = wants_gradient(0) ? like(x) : Tensor();
  Tensor dw_fd = wants_gradient(1) ? take_gradient(1) : Tensor();
  const bool add = static_cast<bool>(dw_fd);
  if (!add && wants_gradient(1)) dw_fd = like(w_fd);
  if (dx)
    gemm({.device = x.device(), .dtype = x.dtype(), .batch = 1, .m = r, .n = d, .k = f, .a = dy.raw(), .b = w_fd.raw(),
          .a_at = {f, 1, 0}, .b_at = {d, 1, 0}, .c = dx.raw(), .c_at = {d, 1, 0}});
  if (dw_fd)
    gemm({.device = x.device(), .dtype = x.dtype(), .batch = 1, .m = f, .n = d, .k = r, .a = dy.raw(), .b = x.raw(),
          .a_at = {1, f, 0}, .b_at = {d, 1, 0}, .c = dw_fd.raw(), .c_at = {d, 1, 0}, .accumulate = add});
  return {dx, dw_fd, bias && wants_gradient(2) ? sum_to(dy, {f}) : Tensor()};
}

}  // namespace linear_details

using namespace linear_details;

HOST Tensor linear(const Arg& x, const Arg& w_fd, const Arg& bias_f) {
  check_together(x, w_fd, "w_fd"), check_together(x, bias_f, "bias_f");
  const auto [r, d, f] = extents(x, w_fd, bias_f);
  Shape shape = x.shape();
  shape.set(-1, f);
  Tensor y = like(x, shape);
  gemm({.device = x.device(), .dtype = x.dtype(), .batch = 1, .m = r, .n = f, .k = d, .a = x.raw(), .b = w_fd.raw(),
        .a_at = {d, 1, 0}, .b_at = {1, d, 0}, .c = y.raw(), .c_at = {f, 1, 0}, .bias_n = bias_f.raw()});
  return record("linear", {x, w_fd, bias_f}, y, keep(x, w_fd, bool(bias_f)),
                [](const Tensor& dy, const Tensor& x, const Tensor& w_fd, bool bias) -> Grads { return backward(dy, x, w_fd, bias); });
}

}  // namespace ricci
