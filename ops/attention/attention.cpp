// With dropout m_tj is 0 or 1 / (1 - p), without it is 1. z is the scale of the scores; j goes over the keys that t sees.
//   y_t = sum_j m_tj p_tj v_j,   p_tj = exp(z q_t . k_j - lse_t),   lse_t = log sum_j exp(z q_t . k_j)
// Kept for the backward: the tensors of q, k and v, y and lse. With delta_t = dy_t . y_t = sum_j p_tj m_tj dy_t . v_j:
//   dv_j = sum_t m_tj p_tj dy_t,   ds_tj = p_tj (m_tj dy_t . v_j - delta_t),   dq_t = z sum_j ds_tj k_j,   dk_j = z sum_t ds_tj q_t
#include "ops/attention/attention.h"

#include <cmath>

#include "autograd/random.h"
#include "autograd/record.h"
#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/attention/kernels.h"

namespace ricci {
namespace attention_kernels {
namespace {

// FLOPs of `products` matrix products over the pairs of a query and a key it sees.
double flops_of(const Problem& problem, int products) {
  int64_t pairs = 0;
  for (int64_t t = 0; t < problem.queries; ++t) {
    const int64_t seen = problem.sees.end_key(t, problem.keys) - problem.sees.first_key(t);
    pairs += seen > 0 ? seen : 0;
  }
  return 2.0 * products * static_cast<double>(pairs) * static_cast<double>(problem.batches * problem.d());
}

bool no_pairs(const Problem& problem) { return problem.batches * problem.queries * problem.keys == 0; }

}  // namespace

WeightDropout draw_dropout(double p, int64_t heads) {
  if (p == 0) return {};
  return {take_stream(), static_cast<uint32_t>(p * 4294967296.0), 1 / (1 - p), static_cast<int64_t>(random_state().micro_batch) * heads};
}

Outputs forward(const Problem& problem, const Views& inputs) {
  const Tensor& q = inputs.q.tensor;
  const Outputs out{like(q, {problem.batches, problem.queries, problem.d()}),
      like(q, {problem.batches, problem.heads, problem.queries}, sums_of(q.dtype()))};
  if (no_pairs(problem)) {
    fill(out.y_bcd, 0);
    fill(out.lse_bnc, HUGE_VAL);
    return out;
  }
  if (trace::enabled) trace::flops(flops_of(problem, 2));
  (q.device() == Device::cpu ? forward_cpu : forward_gpu)(problem, inputs, out);
  return out;
}

void backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients) {
  if (no_pairs(problem)) {
    for (const Rows* rows : {&gradients.q, &gradients.k, &gradients.v}) fill(rows->tensor, 0);
    return;
  }
  if (trace::enabled) trace::flops(flops_of(problem, 5));
  (dy.device() == Device::cpu ? backward_cpu : backward_gpu)(problem, dy, inputs, out, gradients);
}

}  // namespace attention_kernels

using namespace attention_kernels;

Tensor attention(const Rows& q, const Rows& k, const Rows& v, const Visibility& sees, const AttentionOptions& options) {
  Checked checked = check("attention", q, k, v, sees, options);
  Problem& problem = checked.problem;
  problem.dropout = draw_dropout(options.dropout, problem.batches * problem.heads);
  const Outputs out = forward(problem, checked.views());
  const std::vector<Tensor> tensors(checked.inputs.begin(), checked.inputs.end());
  // problem.lengths is a raw pointer: keeping the tensor, which the backward does not name, keeps its memory alive.
  return record("attention", checked.inputs, out.y_bcd, keep(tensors, out.y_bcd, out.lse_bnc, options.lengths_b, problem, checked.layout),
      [](const Tensor& dy, const std::vector<Tensor>& tensors, const Tensor& y, const Tensor& lse, const Tensor&, const Problem& kept,
          const Layout& layout) -> Grads {
        const Grads gradients = layout.gradients(tensors);
        attention_kernels::backward(kept, dy, layout.views(tensors), {y, lse}, layout.views(gradients));
        return gradients;
      });
}

}  // namespace ricci
