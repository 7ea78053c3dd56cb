// One head of attention, formula by formula, on matrices in f64 on the CPU, with one loop over all visible pairs for each step. It is slow,
// with all scores in memory, but short enough to check by eye: the tests compare the fast versions with it.
//   s_tj = z q_t . k_j,   p_tj = exp(s_tj) / sum_i exp(s_ti),   y_t = sum_j p_tj v_j        over the keys j that query t sees
// The backward pass goes through the steps in reverse. From dy_t = dL/dy_t it computes
//   dv_j = sum_t p_tj dy_t,   dp_tj = dy_t . v_j               from y_t = sum_j p_tj v_j
//   ds_tj = p_tj (dp_tj - sum_i p_ti dp_ti)                    all p_tj of a query are divided by the same sum
//   dq_t = z sum_j ds_tj k_j,   dk_j = z sum_t ds_tj q_t       from s_tj = z q_t . k_j
// The largest score of the query is subtracted before exp to prevent overflow. The quotients do not change.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dims.h"
#include "core/view.h"
#include "cuda/device/device.h"
#include "ops/attention/attention.h"

namespace ricci {
namespace {

View<double, 2> matrix(const Tensor& t) { return view<double, 2>(t); }
Tensor zeros_f64(const Shape& shape) { return zeros(shape, Dtype::f64, Device::cpu); }

double dot(const View<double, 2>& a, int64_t i, const View<double, 2>& b, int64_t j) {
  double sum = 0;
  for (int64_t x = 0; x < a.extent[1]; ++x) sum += a(i, x) * b(j, x);
  return sum;
}

// Adds factor times row j of b to row i of a.
void add(const View<double, 2>& a, int64_t i, double factor, const View<double, 2>& b, int64_t j) {
  for (int64_t x = 0; x < a.extent[1]; ++x) a(i, x) += factor * b(j, x);
}

template <class F> void each_visible_pair(const Tensor& p_cC, const Visibility& sees, F f) {
  for (int64_t t = 0; t < p_cC.shape()[0]; ++t)
    for (int64_t j = 0; j < p_cC.shape()[1]; ++j)
      if (sees.visible(t, j)) f(t, j);
}

}  // namespace

Tensor naive_weights(const Tensor& q_ck, const Tensor& k_Ck, const Visibility& sees, double z) {
  const Dims n = DIMS(q_ck, k_Ck);
  const Tensor p_cC = zeros_f64({n['c'], n['C']});
  const auto q = matrix(q_ck), k = matrix(k_Ck), p = matrix(p_cC);
  std::vector<double> largest(n['c'], -HUGE_VAL), sum(n['c'], 0);
  each_visible_pair(p_cC, sees, [&](int64_t t, int64_t j) { largest[t] = std::max(largest[t], p(t, j) = dot(q, t, k, j) * z); });
  each_visible_pair(p_cC, sees, [&](int64_t t, int64_t j) { sum[t] += p(t, j) = std::exp(p(t, j) - largest[t]); });
  each_visible_pair(p_cC, sees, [&](int64_t t, int64_t j) { p(t, j) /= sum[t]; });
  return p_cC;
}

Tensor naive_attention(const Tensor& q_ck, const Tensor& k_Ck, const Tensor& v_Ck, const Visibility& sees, double z) {
  const Tensor p_cC = naive_weights(q_ck, k_Ck, sees, z), y_ck = zeros_f64(q_ck.shape());
  each_visible_pair(p_cC, sees, [y = matrix(y_ck), p = matrix(p_cC), v = matrix(v_Ck)](int64_t t, int64_t j) { add(y, t, p(t, j), v, j); });
  return y_ck;
}

std::array<Tensor, 3> naive_attention_gradients(
    const Tensor& dy_ck, const Tensor& q_ck, const Tensor& k_Ck, const Tensor& v_Ck, const Visibility& sees, double z) {
  const Tensor p_cC = naive_weights(q_ck, k_Ck, sees, z), dp_cC = zeros_f64(p_cC.shape());
  const Tensor dq_ck = zeros_f64(q_ck.shape()), dk_Ck = zeros_f64(k_Ck.shape()), dv_Ck = zeros_f64(v_Ck.shape());
  const auto q = matrix(q_ck), k = matrix(k_Ck), v = matrix(v_Ck), dy = matrix(dy_ck), p = matrix(p_cC);
  const auto dq = matrix(dq_ck), dk = matrix(dk_Ck), dv = matrix(dv_Ck), dp = matrix(dp_cC);
  std::vector<double> sum(q_ck.shape()[0], 0);
  each_visible_pair(p_cC, sees, [&](int64_t t, int64_t j) {
    add(dv, j, p(t, j), dy, t);
    dp(t, j) = dot(dy, t, v, j);
    sum[t] += p(t, j) * dp(t, j);
  });
  each_visible_pair(p_cC, sees, [&](int64_t t, int64_t j) {
    const double ds = p(t, j) * (dp(t, j) - sum[t]);
    add(dq, t, z * ds, k, j);
    add(dk, j, z * ds, q, t);
  });
  return {dq_ck, dk_Ck, dv_Ck};
}

}  // namespace ricci
