// y_rf  = x_rd w_fd + bias_f                 r: all indices of x but the innermost
// dx_rd = dy_rf w_fd,   dw_fd = dy_rf x_rd,   dbias_f = sum_r dy_rf
#include "autograd/record.h"
#include "core/dims.h"
#include "cuda/gemm/gemm.h"
#include "cuda/seam.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/products/products.h"

namespace ricci {
HOST MapGradients map_gradients(const Tensor& dy, const Tensor& x, const Tensor& w_fd, int w_input, int bias_input) {
  const int64_t f = w_fd.shape()[0], d = w_fd.shape()[1], r = d ? x.size() / d : 0;
  const bool sums = bias_input >= 0 && wants_gradient(bias_input);
  if (!wants_gradient(w_input)) return {{}, sums ? sum_to(dy, {f}, gradient_dtype(bias_input)) : Tensor()};
  Tensor dw_fd = take_gradient(w_input);
  const bool add = static_cast<bool>(dw_fd);
  if (!add) dw_fd = like(w_fd, w_fd.shape(), gradient_dtype(w_input));
  // clang-format off
  const Gemm product{.device = x.device(), .dtype = x.dtype(), .batch = 1, .m = f, .n = d, .k = r, .a = dy.raw(), .b = x.raw(),
                     .a_at = {1, f, 0}, .b_at = {d, 1, 0}, .c = dw_fd.raw(), .c_at = {d, 1, 0},
                     .accumulate = add, .c_f32 = dw_fd.dtype() != w_fd.dtype()};
  // clang-format on
  if (sums) return {dw_fd, gemm_with_row_sums(product, dy, gradient_dtype(bias_input))};
  gemm(product);
  return {dw_fd, Tensor()};
}

namespace linear_details {

HOST Grads backward(const Tensor& dy, const Tensor& x, const Tensor& w_fd, bool bias) {
  const int64_t f = w_fd.shape()[0], d = w_fd.shape()[1], r = d ? x.size() / d : 0;
  const Tensor dx = wants_gradient(0) ? like(x) : Tensor();
  if (dx)
    // clang-format off
    gemm({.device = x.device(), .dtype = x.dtype(), .batch = 1, .m = r, .n = d, .k = f, .a = dy.raw(), .b = w_fd.raw(),
          .a_at = {f, 1, 0}, .b_at = {d, 1, 0}, .c = dx.raw(), .c_at = {d, 1, 0}});
  // clang-format on
  const auto [dw_fd, dbias_f] = map_gradients(dy, x, w_fd, 1, bias ? 2 : -1);
  return {dx, dw_fd, dbias_f};
}

}  // namespace linear_details

using namespace linear_details;

HOST Tensor linear(const Arg& x_rd, const Arg& w_fd, const Arg& bias_f) {
  const Dims n = DIMS(merged(x_rd), w_fd, optional(bias_f));
  const int64_t r = n['r'], d = n['d'], f = n['f'];
  Shape shape = x_rd.shape();
  shape.set(-1, f);
  Tensor y = like(x_rd, shape);
  // clang-format off
  gemm({.device = x_rd.device(), .dtype = x_rd.dtype(), .batch = 1, .m = r, .n = f, .k = d, .a = x_rd.raw(), .b = w_fd.raw(),
        .a_at = {d, 1, 0}, .b_at = {1, d, 0}, .c = y.raw(), .c_at = {f, 1, 0}, .bias_n = bias_f.raw()});
  // clang-format on
  return record("linear", {x_rd, w_fd, bias_f}, y, keep(x_rd, w_fd, bool(bias_f)),
      [](const Tensor& dy, const Tensor& x, const Tensor& w_fd, bool bias) -> Grads { return backward(dy, x, w_fd, bias); });
}

}  // namespace ricci
