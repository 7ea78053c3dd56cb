// The public op: the forward pass, the tensors that it keeps, and the choice of the implementation. z is the factor of the scores. m_tj is
// 1 without dropout, and 0 or 1 / (1 - p) with dropout. Sums over j are over the keys that query t sees.
//   y_t = sum_j m_tj p_tj v_j,   p_tj = exp(z q_t . k_j - lse_t),   lse_t = log sum_j exp(z q_t . k_j)
// The backward pass computes p again from q, k and lse, so c numbers are kept instead of c x C. The derivative of the softmax
// (definition.cpp) contains a sum over all keys of a query. This sum equals the dot product of two known vectors, delta_t:
//   sum_i p_ti dp_ti = sum_i p_ti m_ti (dy_t . v_i) = dy_t . (sum_i m_ti p_ti v_i) = dy_t . y_t = delta_t
// So a block of keys can be processed without the other keys:
//   dv_j = sum_t m_tj p_tj dy_t,   ds_tj = p_tj (m_tj dy_t . v_j - delta_t),   dq_t = z sum_j ds_tj k_j,   dk_j = z sum_t ds_tj q_t
#include "ops/attention/attention.h"

#include <atomic>
#include <cmath>
#include <cstdio>

#include "autograd/record.h"
#include "core/philox.h"
#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/attention/flash/flash.h"
#include "ops/attention/kernels.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {
namespace attention_kernels {
namespace {

// Returns the FLOPs of `products` matrix products over the visible (query, key) pairs.
double count_flops(const Problem& problem, int products) {
  int64_t pairs = 0;
  for (int64_t t = 0; t < problem.queries; ++t) {
    const int64_t seen = problem.sees.end_key(t, problem.keys) - problem.sees.first_key(t);
    pairs += seen > 0 ? seen : 0;
  }
  return 2.0 * products * static_cast<double>(pairs) * static_cast<double>(problem.batches * problem.d());
}

bool no_pairs(const Problem& problem) { return problem.batches == 0 || problem.queries == 0 || problem.keys == 0; }

void warn_once_of_slow_bf16(const Problem& problem) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  std::fprintf(stderr,
      "attention: heads of width %lld with %lld queries and %lld keys cannot use the tensor cores; bf16 is as slow as f32\n",
      static_cast<long long>(problem.width), static_cast<long long>(problem.queries), static_cast<long long>(problem.keys));
}

struct Implementation {
  Forward* forward;
  Backward* backward;
};
constexpr Implementation kOfPath[] = {  // in the order of GpuPath
    {flash_forward, flash_backward}, {padded_forward, padded_backward}, {blocks_forward, blocks_backward}};

Implementation choose(const Problem& problem, const std::vector<ColumnSlice>& slices) {
  if (slices[0].tensor.device() == Device::cpu) return {forward_cpu, backward_cpu};
  const GpuPath path = gpu_path(problem, slices);
  if (path == GpuPath::blocks && slices[0].tensor.dtype() == Dtype::bf16) warn_once_of_slow_bf16(problem);
  return kOfPath[static_cast<size_t>(path)];
}

}  // namespace

GpuPath gpu_path(const Problem& problem, const std::vector<ColumnSlice>& slices) {
  if (slices[0].tensor.dtype() != Dtype::bf16) return GpuPath::blocks;
  if (flash_fits(problem, slices)) return GpuPath::flash;
  return padding_fits(problem, slices[0].tensor.device()) ? GpuPath::padded : GpuPath::blocks;
}

WeightDropout draw_dropout(double p, int64_t heads) {
  if (p == 0) return {};
  return {take_stream(), static_cast<uint32_t>(p * 4294967296.0), 1 / (1 - p), static_cast<int64_t>(random_state().micro_batch) * heads};
}

Outputs forward(const Problem& problem, const QueryKeyValue& inputs) {
  const auto& [q, k, v] = inputs;
  const Outputs out{like(q.tensor, {problem.batches, problem.queries, problem.d()}),
      like(q.tensor, {problem.batches, problem.heads, problem.queries}, sums_of(q.tensor.dtype()))};
  if (no_pairs(problem)) {
    fill(out.y_bcd, 0);
    fill(out.lse_bnc, HUGE_VAL);
    return out;
  }
  if (trace::enabled) trace::flops(count_flops(problem, 2));
  choose(problem, {q, k, v, {out.y_bcd}}).forward(problem, inputs, out);
  return out;
}

void backward(const Problem& problem, const Tensor& dy, const QueryKeyValue& inputs, const Outputs& out, const QueryKeyValue& gradients) {
  const auto& [dq, dk, dv] = gradients;
  if (no_pairs(problem)) {
    for (const ColumnSlice* slice : {&dq, &dk, &dv}) fill(slice->tensor, 0);
    return;
  }
  if (trace::enabled) trace::flops(count_flops(problem, 5));
  choose(problem, {inputs.q, inputs.k, inputs.v, {out.y_bcd}, {dy}, dq, dk, dv}).backward(problem, dy, inputs, out, gradients);
}

}  // namespace attention_kernels

using namespace attention_kernels;

Tensor attention(
    const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees, const AttentionOptions& options) {
  Checked checked = check("attention", q, k, v, sees, options);
  Problem& problem = checked.problem;
  problem.dropout = draw_dropout(options.dropout, problem.batches * problem.heads);
  const Outputs out = forward(problem, checked.slices());
  const std::vector<Tensor> tensors(checked.inputs.begin(), checked.inputs.end());
  // lengths_b is kept only for its memory: problem.lengths points to it.
  return record("attention", checked.inputs, out.y_bcd, keep(tensors, out.y_bcd, out.lse_bnc, options.lengths_b, problem, checked.layout),
      [](const Tensor& dy, const std::vector<Tensor>& tensors, const Tensor& y, const Tensor& lse, const Tensor&, const Problem& kept,
          const Layout& layout) -> Grads {
        const Grads gradients = layout.gradients(tensors);
        attention_kernels::backward(kept, dy, layout.slices(tensors), {y, lse}, layout.slices(gradients));
        return gradients;
      });
}

Tensor attention_weights(const ColumnSlice& q, const ColumnSlice& k, const Visibility& sees, const AttentionOptions& options) {
  const Checked checked = check("attention_weights", q, k, k, sees, options);
  const Problem& problem = checked.problem;
  const QueryKeyValue slices = checked.slices();
  const Tensor lengths_b = options.lengths_b ? to(options.lengths_b.detached(), Device::cpu) : Tensor();
  const Tensor p_bncC = zeros({problem.batches, problem.heads, problem.queries, problem.keys}, Dtype::f64, Device::cpu);
  // Returns the first `count` positions of head n of a slice.
  const auto matrix = [&](const ColumnSlice& x, int64_t b, int64_t n, int64_t count) {
    const Tensor x_bck = ricci::slice(x.tensor.detached(), 2, x.offset + n / x.group * problem.width, problem.width);
    return to(convert(x_bck.rows(b, 1), Dtype::f64), Device::cpu).reshaped({x_bck.shape()[1], problem.width}).rows(0, count);
  };
  double* p = p_bncC.data<double>();
  for (int64_t b = 0; b < problem.batches; ++b)
    for (int64_t n = 0; n < problem.heads; ++n) {
      const int64_t keys = lengths_b ? lengths_b.data<int64_t>()[b] : problem.keys;
      const Tensor p_cC = naive_weights(matrix(slices.q, b, n, problem.queries), matrix(slices.k, b, n, keys), sees, problem.score_scale);
      for (int64_t t = 0; t < problem.queries; ++t, p += problem.keys) std::copy_n(p_cC.data<double>() + t * keys, keys, p);
    }
  return p_bncC;
}

}  // namespace ricci
