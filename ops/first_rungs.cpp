// Attention, layer norm and the loss of a language model, written as their formulas. Each op in them records itself, so no backward
// function is needed here. The plain loops at the end record nothing: tests compare only their values. The fast ops compute the same values
// in one kernel. These formulas keep every tensor that they name, including a score for each pair of positions. A letter after the _ of a
// name is an index: b sequence of the batch, c query position, C key position, n head, k column of a head, d column, r row, v token of the
// vocabulary. contract() multiplies two tensors and sums over the letters that are not in its result.
#include "ops/first_rungs.h"

#include <cmath>
#include <limits>

#include "core/dims.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/elements/arithmetic.h"
#include "ops/products/products.h"
#include "ops/rows/cross_entropy.h"
#include "ops/rows/reduce.h"
#include "ops/rows/rms_norm.h"
#include "ops/rows/softmax.h"
#include "ops/shapes/shape_ops.h"

namespace ricci::first_rungs {
namespace {

Tensor in_heads(const Arg& x_bcd, int64_t heads);              // a view of [b c d] as [b c n k]
Tensor mask_of(const Tensor& r_bncC, const Visibility& sees);  // 0 if query c sees key C, else -infinity

}  // namespace

Tensor attention(const Arg& q_bcd, const Arg& k_bCd, const Arg& v_bCd, const Visibility& sees, int64_t heads) {
  const Tensor q_bcnk = in_heads(q_bcd, heads), k_bCnk = in_heads(k_bCd, heads), v_bCnk = in_heads(v_bCd, heads);
  const Tensor r_bncC = contract("bcnk,bCnk->bncC", q_bcnk, k_bCnk) / std::sqrt(static_cast<double>(q_bcnk.shape()[3]));
  const Tensor p_bncC = softmax(r_bncC + mask_of(r_bncC, sees));  // the weights of the keys: exp(-infinity) is 0
  return reshape(contract("bncC,bCnk->bcnk", p_bncC, v_bCnk), q_bcd.shape());
}

// rms_norm(x) = gain x / sqrt(mean of x^2 + eps). After the mean is subtracted, the mean of x^2 is the variance.
Tensor layer_norm(const Arg& x_rd, const Arg& gain_d, const Arg& bias_d) {
  const Tensor mean_r = mean(x_rd, -1);
  Shape column = mean_r.shape();
  column.push_back(1);
  return rms_norm(x_rd - reshape(mean_r, column), gain_d) + bias_d;
}

Tensor classifier_loss(const Arg& x_rd, const Arg& w_vd, const Arg& bias_v, const Tensor& targets_r) {
  const Tensor logits_rv = linear(x_rd, w_vd, bias_v);
  return cross_entropy(logits_rv, targets_r);  // the mean over r of -log softmax(logits_r)[target_r]
}

namespace {

Tensor in_heads(const Arg& x_bcd, int64_t heads) {
  const int64_t b = x_bcd.shape()[0], c = x_bcd.shape()[1], d = x_bcd.shape()[2];
  return reshape(x_bcd, {b, c, heads, d / heads});
}

Tensor mask_of(const Tensor& r_bncC, const Visibility& sees) {
  const int64_t queries = r_bncC.shape()[2], keys = r_bncC.shape()[3];
  const Tensor mask_cC = zeros({queries, keys}, Dtype::f64, Device::cpu);
  for (int64_t c = 0; c < queries; ++c)
    for (int64_t C = 0; C < keys; ++C)
      if (!sees.visible(c, C)) mask_cC.data<double>()[c * keys + C] = -std::numeric_limits<double>::infinity();
  return convert(to(mask_cC, r_bncC.device()), r_bncC.dtype());
}

}  // namespace

// ---- The first versions of the other ops

Tensor metric_scores(const Arg& p_bcd, const Arg& M_nkK) {
  const Tensor p_bcnk = in_heads(p_bcd, M_nkK.shape()[0]);
  const Tensor q_bcnK = contract("bcnk,nkK->bcnK", p_bcnk, M_nkK);
  return contract("bcnK,bCnK->bncC", q_bcnK, p_bcnk);
}

Tensor matrix_product(const Tensor& a_mk, const Tensor& b_kn) {
  const Dims e = DIMS(a_mk, b_kn);
  const Tensor c_mn({e['m'], e['n']}, Dtype::f64);
  const double *const a = a_mk.data<double>(), *const b = b_kn.data<double>();
  for (int64_t m = 0; m < e['m']; ++m)
    for (int64_t n = 0; n < e['n']; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < e['k']; ++k) sum += a[m * e['k'] + k] * b[k * e['n'] + n];
      c_mn.data<double>()[m * e['n'] + n] = sum;
    }
  return c_mn;
}

Tensor shift_and_sum(const Tensor& v_bcd, const Tensor& coef_bcx, int64_t heads) {
  const Dims e = DIMS(v_bcd, coef_bcx);
  const int64_t d = e['d'], width = d / heads, levels = e['x'] / heads;
  const Tensor y_bcd = like(v_bcd);
  copy(y_bcd, v_bcd);
  for (int64_t b = 0; b < e['b']; ++b)
    for (int64_t r = 0; r < levels; ++r)
      for (int64_t i = e['c'] - 1; i >= int64_t{1} << r; --i) {
        double* const y_d = y_bcd.data<double>() + (b * e['c'] + i) * d;
        const double* const c_x = coef_bcx.data<double>() + (b * e['c'] + i) * e['x'];
        for (int64_t n = 0; n < heads; ++n)
          for (int64_t j = n * width; j < (n + 1) * width; ++j) y_d[j] += c_x[n * levels + r] * (y_d - (d << r))[j];
      }
  return y_bcd;
}

}  // namespace ricci::first_rungs
