// The definition, spelled out: all scores, their softmax, the weighted sum of the values, and the derivative of each step.
#include <cmath>
#include <limits>

#include "autograd/record.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/attention/kernels.h"

namespace ricci {
namespace {

struct Naive {
  int64_t b, c, heads, width, window;
  bool causal;
  attention_kernels::WeightDropout dropout;
  Tensor lengths_b;  // on the CPU

  bool visible(int64_t i, int64_t t, int64_t s) const {
    if (causal && s > t) return false;
    if (lengths_b && s >= lengths_b.data<int64_t>()[i]) return false;
    return window == 0 || t - s < window;
  }
  // What weight (t, s) of a head is multiplied by; `row` is where its query starts in p_bntc.
  double factor(int64_t row, int64_t s) const { return dropout.active() ? dropout.factor<double>(row + s) : 1; }
  int64_t d() const { return heads * width; }
  // q, k or v (block 0, 1, 2) of position t and head n in a packed tensor.
  double* at(const Tensor& packed, int64_t i, int64_t t, int64_t n, int64_t block) const {
    return packed.data<double>() + (i * c + t) * 3 * d() + block * d() + n * width;
  }
  double* merged(const Tensor& y, int64_t i, int64_t t, int64_t n) const { return y.data<double>() + (i * c + t) * d() + n * width; }
};

Tensor as_f64_on_cpu(const Tensor& t) { return to(convert(t, Dtype::f64), Device::cpu); }
Tensor as(const Tensor& t, const Tensor& model) { return convert(to(t, model.device()), model.dtype()); }

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// p_s of one query: a softmax over the visible keys, zero for the others.
void probabilities(const Naive& of, const Tensor& qkv, int64_t i, int64_t n, int64_t t, double* p) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t s = 0; s < of.c; ++s) {
    p[s] = dot(of.at(qkv, i, t, n, 0), of.at(qkv, i, s, n, 1), of.width) / std::sqrt(static_cast<double>(of.width));
    if (of.visible(i, t, s)) largest = std::max(largest, p[s]);
  }
  for (int64_t s = 0; s < of.c; ++s) sum += p[s] = of.visible(i, t, s) ? std::exp(p[s] - largest) : 0;
  for (int64_t s = 0; s < of.c; ++s) p[s] = sum == 0 ? 0 : p[s] / sum;
}

template <class F> void each_query(const Naive& of, F f) {
  for (int64_t i = 0; i < of.b; ++i)
    for (int64_t n = 0; n < of.heads; ++n)
      for (int64_t t = 0; t < of.c; ++t) f(i, n, t, ((i * of.heads + n) * of.c + t) * of.c);
}

Grads naive_backward(const Tensor& dy_given, const Tensor& qkv_given, const Tensor& p_bntc, const Naive& of) {
  const Tensor dy = as_f64_on_cpu(dy_given), qkv = as_f64_on_cpu(qkv_given), dqkv = zeros_like(qkv);
  each_query(of, [&](int64_t i, int64_t n, int64_t t, int64_t row) {
    const double *p = p_bntc.data<double>() + row, *dy_t = of.merged(dy, i, t, n), *q_t = of.at(qkv, i, t, n, 0);
    double mean = 0;
    for (int64_t s = 0; s < of.c; ++s) mean += p[s] * of.factor(row, s) * dot(dy_t, of.at(qkv, i, s, n, 2), of.width);
    for (int64_t s = 0; s < of.c; ++s) {
      const double *k_s = of.at(qkv, i, s, n, 1), *v_s = of.at(qkv, i, s, n, 2);
      const double dscore = p[s] * (of.factor(row, s) * dot(dy_t, v_s, of.width) - mean) / std::sqrt(static_cast<double>(of.width));
      for (int64_t x = 0; x < of.width; ++x) {
        of.at(dqkv, i, t, n, 0)[x] += dscore * k_s[x];
        of.at(dqkv, i, s, n, 1)[x] += dscore * q_t[x];
        of.at(dqkv, i, s, n, 2)[x] += of.factor(row, s) * p[s] * dy_t[x];
      }
    }
  });
  return {as(dqkv, qkv_given)};
}

}  // namespace

Tensor naive_attention(const Arg& qkv_bcx, const AttentionOptions& options) {
  const auto problem = attention_kernels::problem_of("naive_attention", qkv_bcx, options);
  const Naive of{problem.batches,
                 problem.context,
                 problem.heads,
                 problem.width,
                 options.window,
                 options.causal,
                 attention_kernels::draw_dropout(options.dropout, problem.batches * problem.heads),
                 options.lengths_b ? to(options.lengths_b, Device::cpu) : Tensor()};
  const Tensor qkv = as_f64_on_cpu(qkv_bcx), p_bntc({of.b, of.heads, of.c, of.c}, Dtype::f64);
  const Tensor y = zeros({of.b, of.c, of.d()}, Dtype::f64, Device::cpu);
  each_query(of, [&](int64_t i, int64_t n, int64_t t, int64_t row) {
    double *p = p_bntc.data<double>() + row, *y_t = of.merged(y, i, t, n);
    probabilities(of, qkv, i, n, t, p);
    for (int64_t s = 0; s < of.c; ++s)
      for (int64_t x = 0; x < of.width; ++x) y_t[x] += of.factor(row, s) * p[s] * of.at(qkv, i, s, n, 2)[x];
  });
  return record(
      "naive_attention", {qkv_bcx}, as(y, qkv_bcx), keep(qkv_bcx, p_bntc, of),
      [](const Tensor& dy, const Tensor& qkv_kept, const Tensor& p, const Naive& kept) { return naive_backward(dy, qkv_kept, p, kept); });
}

}  // namespace ricci
