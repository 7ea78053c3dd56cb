// The definition, spelled out: all scores, their softmax, the weighted sum of the values, and the derivative of each step.
#include <cmath>
#include <limits>

#include "autograd/record.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/attention/kernels.h"

namespace ricci {
namespace {

using attention_kernels::HeadRows;
using attention_kernels::Layout;
using attention_kernels::Problem;
using attention_kernels::Views;

Tensor as_f64_on_cpu(const Tensor& t) { return to(convert(t, Dtype::f64), Device::cpu); }
Tensor as(const Tensor& t, const Tensor& model) { return convert(to(t, model.device()), model.dtype()); }

std::vector<Tensor> as_f64_on_cpu(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(as_f64_on_cpu(t));
  return all;
}

// The problem with lengths that the CPU can read; they point into the tensor lengths_b.
Tensor lengths_on_cpu(const AttentionOptions& options) { return options.lengths_b ? to(options.lengths_b, Device::cpu) : Tensor(); }
Problem on_cpu(Problem problem, const Tensor& lengths_b) {
  if (lengths_b) problem.lengths = lengths_b.data<int64_t>();
  return problem;
}

// q, k, v, y or one of their gradients: at(head, t) is the first of the k numbers of a head at position t.
struct Vectors {
  const Problem& problem;
  HeadRows<double> rows;
  Vectors(const Problem& tensors, const Rows& view) : problem(tensors), rows(attention_kernels::head_rows<double>(view)) {}
  double* at(int64_t head, int64_t t) const { return rows.of_head(problem, head) + t * rows.row; }
};

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// The factor of dropout for the weight of query t and key j.
double factor(const Problem& problem, int64_t head, int64_t t, int64_t j) {
  return problem.dropout.active() ? problem.dropout.factor<double>(problem.weight(head, t) + j) : 1;
}

// p_j of one query: a softmax over the keys that it sees, zero for the others.
void probabilities(const Problem& problem, const Vectors& q, const Vectors& k, int64_t head, int64_t t, double* p) {
  const auto visible = [&](int64_t j) { return j < problem.keys_of(head) && problem.sees.visible(t, j); };
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t j = 0; j < problem.keys; ++j) {
    p[j] = dot(q.at(head, t), k.at(head, j), problem.width) * problem.scale;
    if (visible(j)) largest = std::max(largest, p[j]);
  }
  for (int64_t j = 0; j < problem.keys; ++j) sum += p[j] = visible(j) ? std::exp(p[j] - largest) : 0;
  for (int64_t j = 0; j < problem.keys; ++j) p[j] = sum == 0 ? 0 : p[j] / sum;
}

// f(head, t, the number of the query among all), for every query of every head.
template <class F> void each_query(const Problem& problem, F f) {
  for (int64_t head = 0; head < problem.batches * problem.heads; ++head)
    for (int64_t t = 0; t < problem.queries; ++t) f(head, t, head * problem.queries + t);
}

Tensor weights(const Problem& problem, const Vectors& q, const Vectors& k) {
  const Tensor p_bncC({problem.batches, problem.heads, problem.queries, problem.keys}, Dtype::f64);
  each_query(problem,
      [&](int64_t head, int64_t t, int64_t row) { probabilities(problem, q, k, head, t, p_bncC.data<double>() + row * problem.keys); });
  return p_bncC;
}

// The gradients of the views add up in `gradients`, which begin as zeros.
void add_gradients(const Problem& problem, const Tensor& dy_bcd, const Tensor& p_bncC, const Views& inputs, const Views& gradients) {
  const Vectors q(problem, inputs.q), k(problem, inputs.k), v(problem, inputs.v), dy(problem, {dy_bcd});
  const Vectors dq(problem, gradients.q), dk(problem, gradients.k), dv(problem, gradients.v);
  each_query(problem, [&](int64_t head, int64_t t, int64_t row) {
    const double *p = p_bncC.data<double>() + row * problem.keys, *dy_t = dy.at(head, t);
    double mean = 0;
    for (int64_t j = 0; j < problem.keys; ++j)
      if (p[j] != 0) mean += p[j] * factor(problem, head, t, j) * dot(dy_t, v.at(head, j), problem.width);
    for (int64_t j = 0; j < problem.keys; ++j) {
      if (p[j] == 0) continue;  // what padding holds is not read
      const double m = factor(problem, head, t, j);
      const double dscore = p[j] * (m * dot(dy_t, v.at(head, j), problem.width) - mean) * problem.scale;
      for (int64_t x = 0; x < problem.width; ++x) {
        dq.at(head, t)[x] += dscore * k.at(head, j)[x];
        dk.at(head, j)[x] += dscore * q.at(head, t)[x];
        dv.at(head, j)[x] += m * p[j] * dy_t[x];
      }
    }
  });
}

Grads naive_backward(const Tensor& dy, const std::vector<Tensor>& given, const Tensor& p_bncC, const Problem& kept, const Tensor& lengths_b,
    const Layout& layout) {
  Grads gradients;
  for (const Tensor& t : given) gradients.push_back(zeros(t.shape(), Dtype::f64, Device::cpu));
  add_gradients(on_cpu(kept, lengths_b), as_f64_on_cpu(dy), p_bncC, layout.views(as_f64_on_cpu(given)), layout.views(gradients));
  for (size_t n = 0; n < given.size(); ++n) gradients[n] = as(gradients[n], given[n]);
  return gradients;
}

}  // namespace

Tensor naive_attention(const Rows& q, const Rows& k, const Rows& v, const Visibility& sees, const AttentionOptions& options) {
  auto checked = attention_kernels::check("naive_attention", q, k, v, sees, options);
  checked.problem.dropout = attention_kernels::draw_dropout(options.dropout, checked.problem.batches * checked.problem.heads);
  const Tensor lengths_b = lengths_on_cpu(options);
  const Problem problem = on_cpu(checked.problem, lengths_b);
  const std::vector<Tensor> tensors(checked.inputs.begin(), checked.inputs.end());
  const Views inputs = checked.layout.views(as_f64_on_cpu(tensors));
  const Tensor y_bcd = zeros({problem.batches, problem.queries, problem.d()}, Dtype::f64, Device::cpu);
  const Vectors v_of(problem, inputs.v), y(problem, {y_bcd});
  const Tensor p_bncC = weights(problem, {problem, inputs.q}, {problem, inputs.k});
  each_query(problem, [&](int64_t head, int64_t t, int64_t row) {
    const double* const p = p_bncC.data<double>() + row * problem.keys;
    for (int64_t j = 0; j < problem.keys; ++j)
      for (int64_t x = 0; x < problem.width && p[j] != 0; ++x) y.at(head, t)[x] += factor(problem, head, t, j) * p[j] * v_of.at(head, j)[x];
  });
  return record("naive_attention", checked.inputs, as(y_bcd, q.tensor), keep(tensors, p_bncC, problem, lengths_b, checked.layout),
      [](const Tensor& dy, const std::vector<Tensor>& tensors, const Tensor& p, const Problem& kept, const Tensor& lengths,
          const Layout& layout) { return naive_backward(dy, tensors, p, kept, lengths, layout); });
}

Tensor attention_weights(const Rows& q, const Rows& k, const Visibility& sees, const AttentionOptions& options) {
  const auto checked = attention_kernels::check("attention_weights", q, k, k, sees, options);
  const Tensor lengths_b = lengths_on_cpu(options);
  const Problem problem = on_cpu(checked.problem, lengths_b);
  const Views inputs = checked.layout.views(as_f64_on_cpu({checked.inputs.begin(), checked.inputs.end()}));
  return weights(problem, {problem, inputs.q}, {problem, inputs.k});
}

}  // namespace ricci
