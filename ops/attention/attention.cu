// y_bt = sum_s p_ts v_s,  p_ts = exp(q_t . k_s / sqrt(k) - lse_t),  lse_t = log sum_s exp(q_t . k_s / sqrt(k)), s visible to t
// Kept for the backward: qkv, y and lse. With delta_t = dy_t . y_t:
//   dv_s = sum_t p_ts dy_t,   ds_ts = p_ts (dy_t . v_s - delta_t),   dq_t = sum_s ds_ts k_s / sqrt(k),   dk_s = sum_t ds_ts q_t / sqrt(k)
// Of a sequence with padding only the first `length` keys exist; every query does.
// With dropout, m_ts is 0 or 1 / (1 - p) and y_bt = sum_s m_ts p_ts v_s; then dv_s = sum_t m_ts p_ts dy_t and
//   ds_ts = p_ts (m_ts dy_t . v_s - delta_t);   delta_t = sum_s p_ts m_ts dy_t . v_s = dy_t . y_t  as before.
#include "autograd/random.h"
#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/seam.h"
#include "cuda/trace.h"
#include "ops/attention/attention.h"
#include "ops/attention/kernels.h"

namespace ricci {
namespace attention_kernels {

HOST void check_lengths(const char* op, const Tensor& lengths_b, const Tensor& qkv_bcx) {
  const int64_t b = qkv_bcx.shape()[0], c = qkv_bcx.shape()[1];
  if (!(lengths_b.shape() == Shape{b}) || lengths_b.dtype() != Dtype::i64 || lengths_b.device() != qkv_bcx.device())
    fail("{}: lengths_b{} is {} on {}, expected i64 [{}] on {}", {op, show(lengths_b.shape()), name_of(lengths_b.dtype()),
                                                                 name_of(lengths_b.device()), b, name_of(qkv_bcx.device())});
  if (lengths_b.device() == Device::cuda) return;
  const Tensor read = to(lengths_b, Device::cpu);
  for (int64_t i = 0; i < b; ++i)
    if (const int64_t length = read.data<int64_t>()[i]; length < 0 || length > c)
      fail("{}: length {} at [{}] of lengths_b is outside 0 .. {}", {op, length, i, c});
}

HOST Problem problem_of(const char* op, const Tensor& qkv_bcx, const AttentionOptions& options) {
  Dims dims;
  dims.bind(op, "qkv_bcx", {&qkv_bcx});
  if (options.heads < 1) fail("{}: heads is {}, expected at least 1", {op, options.heads});
  if (options.window < 0) fail("{}: window is {}, expected 0 (none) or more", {op, options.window});
  if (!(options.dropout >= 0 && options.dropout < 1)) fail("{}: dropout is {}, expected 0 or more and less than 1", {op, options.dropout});
  if (dims['x'] % (3 * options.heads))
    fail("{}: index x of qkv_bcx{} is not a multiple of 3 x {} heads", {op, show(qkv_bcx.shape()), options.heads});
  if (options.lengths_b) check_lengths(op, options.lengths_b, qkv_bcx);
  constexpr int64_t kFar = int64_t{1} << 60;
  const int64_t width = dims['x'] / (3 * options.heads), window = options.window ? options.window : kFar;
  Problem problem{dims['b'], dims['c'], options.heads, width, {window, options.causal ? 1 : kFar}, 1 / __builtin_sqrt(static_cast<double>(width))};
  if (options.lengths_b) problem.lengths = options.lengths_b.data<int64_t>();
  return problem;
}

HOST WeightDropout draw_dropout(double p, int64_t heads) {
  if (p == 0) return {};
  return {take_stream(), static_cast<uint32_t>(p * 4294967296.0), 1 / (1 - p), static_cast<int64_t>(random_state().part) * heads};
}

HOST Dtype sums_dtype(const Tensor& t) { return t.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

// FLOPs of `products` matrix products over the pairs of a query and a key it sees.
HOST double flops_of(const Problem& problem, int products) {
  int64_t pairs = 0;
  for (int64_t t = 0; t < problem.context; ++t) pairs += problem.band.end_key(t, problem.context) - problem.band.first_key(t);
  return 2.0 * products * static_cast<double>(pairs) * static_cast<double>(problem.batches * problem.d());
}

HOST Outputs forward(const Problem& problem, const Tensor& qkv) {
  const Outputs out{like(qkv, {problem.batches, problem.context, problem.d()}),
                    like(qkv, {problem.batches, problem.heads, problem.context}, sums_dtype(qkv))};
  if (qkv.size() == 0) return out;
  if (trace::enabled) trace::flops(flops_of(problem, 2));
  (qkv.device() == Device::cpu ? forward_cpu : forward_gpu)(problem, qkv, out.y_bcd, out.lse_bnc);
  return out;
}

HOST Tensor backward(const Problem& problem, const Tensor& dy, const Tensor& qkv, const Outputs& out) {
  const Tensor dqkv = like(qkv);
  if (qkv.size() == 0) return dqkv;
  if (trace::enabled) trace::flops(flops_of(problem, 5));
  (qkv.device() == Device::cpu ? backward_cpu : backward_gpu)(problem, dy, qkv, out.y_bcd, out.lse_bnc, dqkv);
  return dqkv;
}

}  // namespace attention_kernels

using namespace attention_kernels;

HOST Tensor attention(const Arg& qkv_bcx, const AttentionOptions& options) {
  Problem problem = problem_of("attention", qkv_bcx, options);
  problem.dropout = draw_dropout(options.dropout, problem.batches * problem.heads);
  const Outputs out = forward(problem, qkv_bcx);
  return record("attention", {qkv_bcx}, out.y_bcd, keep(qkv_bcx, out.y_bcd, out.lse_bnc, options.lengths_b, problem),
                [](const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& lse, const Tensor&, const Problem& kept) -> Grads {
                  return {backward(kept, dy, qkv, {y, lse})};  // it points into the lengths
                });
}

}  // namespace ricci
