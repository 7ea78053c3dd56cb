// y_rf  = x_rd w_fd + bias_f                 r: all indices of x except the last
// dx_rd = dy_rf w_fd,   dw_fd = dy_rf x_rd,   dbias_f = sum_r dy_rf
// A product sums over the letter that its factors share. That letter must be the last of the first factor and the first of the second; a
// factor in a different order is transposed: here w_fd, stored as (out, in).
#include "autograd/record.h"
#include "core/dims.h"
#include "cuda/gemm/gemm.h"
#include "cuda/seam.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/products/products.h"

namespace ricci {
namespace linear_details {

// The inputs of the op are x, w and bias: 0, 1 and 2.
HOST Grads backward(const Tensor& dy_rf, const Tensor& x_rd, const Tensor& w_fd, bool bias) {
  Tensor dx_rd, dw_fd, dbias_f;
  if (wants_gradient(0)) {
    dx_rd = like(x_rd);
    gemm(product(dx_rd, dy_rf, w_fd));
  }
  const bool sums = bias && wants_gradient(2);
  if (wants_gradient(1)) {
    dw_fd = take_gradient(1);  // the gradient that w already has, if any: the product adds to it
    const bool adds = bool(dw_fd);
    if (!adds) dw_fd = like(w_fd, w_fd.shape(), gradient_dtype(1));
    Gemm dw = product(dw_fd, Matrix(dy_rf).transposed(), x_rd);
    dw.accumulate = adds;
    if (sums) dbias_f = gemm_with_row_sums(dw, dy_rf, gradient_dtype(2));
    else gemm(dw);
  } else if (sums) {
    dbias_f = sum_to(dy_rf, {w_fd.shape()[0]}, gradient_dtype(2));
  }
  return {dx_rd, dw_fd, dbias_f};
}

}  // namespace linear_details

HOST Tensor linear(const Arg& x_rd, const Arg& w_fd, const Arg& bias_f) {
  const Dims n = DIMS(merged(x_rd), w_fd, optional(bias_f));
  Shape shape = x_rd.shape();
  shape.set(-1, n['f']);
  const Tensor y_rf = like(x_rd, shape);
  gemm(product(y_rf, x_rd, Matrix(w_fd).transposed(), bias_f));
  return record("linear", {x_rd, w_fd, bias_f}, y_rf, keep(x_rd, w_fd, bool(bias_f)),
      [](const Tensor& dy_rf, const Tensor& x_rd, const Tensor& w_fd, bool bias) -> Grads {
        return linear_details::backward(dy_rf, x_rd, w_fd, bias);
      });
}

}  // namespace ricci
