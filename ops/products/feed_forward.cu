// h_rf = x_rd w_fd + bias_f,   a_rf = gelu_tanh(h_rf),   y_re = a_rf v_ef + out_bias_e
// da_rf = dy_re v_ef,   dh_rf = da_rf gelu_tanh'(h_rf),   dx_rd = dh_rf w_fd;   the parameters' as in linear.cu
// Where cuBLASLt can, a and h come out of one product, and dh out of another. The sums of dh that are the gradient of the bias come with
// dw_fd, of its type: beside the product that makes dh they would be rounded to bf16.
//   bytes   8 N for N elements of h in bf16; gelu and its slope as passes of their own move 16 N
#include "autograd/record.h"
#include "core/dims.h"
#include "cuda/gemm/gemm.h"
#include "cuda/seam.h"
#include "ops/elements/activations.h"
#include "ops/products/products.h"

namespace ricci {
namespace feed_forward_details {

struct Hidden {
  Tensor a_rf, h_rf;  // h_rf: for the backward
};

HOST Hidden hidden_of(const Tensor& x, const Tensor& w_fd, const Tensor& bias_f, int64_t r, bool keeps_h) {
  const int64_t f = w_fd.shape()[0], d = w_fd.shape()[1];
  // clang-format off
  Gemm product{.device = x.device(), .dtype = x.dtype(), .batch = 1, .m = r, .n = f, .k = d, .a = x.raw(), .b = w_fd.raw(),
               .a_at = {d, 1, 0}, .b_at = {1, d, 0}, .c = nullptr, .c_at = {f, 1, 0}, .bias_n = bias_f.raw()};
  // clang-format on
  if (x.device() == Device::cuda) {
    const Hidden hidden{like(x, {r, f}), keeps_h ? like(x, {r, f}) : Tensor()};
    Gemm fused = product;
    fused.c = hidden.a_rf.raw();
    fused.epilogue = Epilogue::gelu;
    fused.beside = hidden.h_rf.raw();
    if (gemm_fused(fused)) return hidden;
  }
  const Tensor h_rf = like(x, {r, f});
  product.c = h_rf.raw();
  gemm(product);
  return {gelu_tanh_value(h_rf), h_rf};
}

// dh_rf = (dy_re v_ef) gelu_tanh'(h_rf)
HOST Tensor hidden_gradient(const Tensor& dy, const Tensor& v_ef, const Tensor& h_rf) {
  const int64_t e = v_ef.shape()[0], f = v_ef.shape()[1], r = h_rf.shape()[0];
  const Tensor dh_rf = like(h_rf);
  // clang-format off
  Gemm product{.device = dy.device(), .dtype = dy.dtype(), .batch = 1, .m = r, .n = f, .k = e, .a = dy.raw(), .b = v_ef.raw(),
               .a_at = {e, 1, 0}, .b_at = {f, 1, 0}, .c = dh_rf.raw(), .c_at = {f, 1, 0}, .epilogue = Epilogue::gelu_gradient,
               .beside = h_rf.raw()};
  // clang-format on
  if (gemm_fused(product)) return dh_rf;
  product.epilogue = Epilogue::none;
  gemm(product);
  return gelu_tanh_backward(dh_rf, h_rf);
}

HOST Grads backward(const Tensor& dy, const Tensor& x, const Tensor& w_fd, const Tensor& v_ef, const Tensor& a_rf, const Tensor& h_rf) {
  const int64_t f = w_fd.shape()[0], d = w_fd.shape()[1], r = h_rf.shape()[0];
  const auto [dv_ef, dout_bias_e] = map_gradients(dy, a_rf, v_ef, 3, 4);
  if (!wants_gradient(0) && !wants_gradient(1) && !wants_gradient(2)) return {{}, {}, {}, dv_ef, dout_bias_e};
  const Tensor dh_rf = hidden_gradient(dy, v_ef, h_rf), dx = wants_gradient(0) ? like(x) : Tensor();
  if (dx)
    // clang-format off
    gemm({.device = x.device(), .dtype = x.dtype(), .batch = 1, .m = r, .n = d, .k = f, .a = dh_rf.raw(), .b = w_fd.raw(),
          .a_at = {f, 1, 0}, .b_at = {d, 1, 0}, .c = dx.raw(), .c_at = {d, 1, 0}});
  // clang-format on
  const auto [dw_fd, dbias_f] = map_gradients(dh_rf, x, w_fd, 1, 2);
  return {dx, dw_fd, dbias_f, dv_ef, dout_bias_e};
}

}  // namespace feed_forward_details

using namespace feed_forward_details;

HOST Tensor feed_forward(const Arg& x_rd, const Arg& w_fd, const Arg& bias_f, const Arg& v_ef, const Arg& out_bias_e) {
  const Dims n = DIMS(merged(x_rd), w_fd, bias_f, v_ef, out_bias_e);
  const int64_t r = n['r'], f = n['f'], e = n['e'];
  const std::vector<Arg> inputs = {x_rd, w_fd, bias_f, v_ef, out_bias_e};
  const Tape* const tape = Tape::recording();
  const Hidden hidden = hidden_of(x_rd, w_fd, bias_f, r, tape && tape->depends("feed_forward", inputs));
  Shape shape = x_rd.shape();
  shape.set(-1, e);
  Tensor y = like(x_rd, shape);
  // clang-format off
  gemm({.device = x_rd.device(), .dtype = x_rd.dtype(), .batch = 1, .m = r, .n = e, .k = f, .a = hidden.a_rf.raw(), .b = v_ef.raw(),
        .a_at = {f, 1, 0}, .b_at = {1, f, 0}, .c = y.raw(), .c_at = {e, 1, 0}, .bias_n = out_bias_e.raw()});
  // clang-format on
  return record("feed_forward", inputs, y, keep(x_rd, w_fd, v_ef, hidden.a_rf, hidden.h_rf),
      [](const Tensor& dy, const Tensor& x, const Tensor& w_fd, const Tensor& v_ef, const Tensor& a_rf, const Tensor& h_rf) -> Grads {
        return backward(dy, x, w_fd, v_ef, a_rf, h_rf);
      });
}

}  // namespace ricci
