// The first versions (rungs) of ops: their formulas, written with ops that the tape records one by one. They are slow and keep every tensor
// that the formulas name. The tests compare the fused ops with them. (The first version of shift_and_sum is
// ops/shift_and_sum/definition.cpp.)
#pragma once
#include "autograd/arg.h"
#include "ops/attention/visibility.h"

namespace ricci::first_rungs {

// y = merge(softmax_C(q_bcn . k_bCn / sqrt(k) | visible) v): the attention of queries [b c d] to keys and values [b C d]. A head is d /
// heads adjacent columns. Every query must see a key: the softmax over no scores is NaN. Errors: as for the ops that it calls.
Tensor attention(const Arg& q_bcd, const Arg& k_bCd, const Arg& v_bCd, const Visibility& sees, int64_t heads);

// y = gain (x - mean) / sqrt(variance + eps) + bias. Errors: as for the ops that it calls.
Tensor layer_norm(const Arg& x_rd, const Arg& gain_d, const Arg& bias_d);

// A linear map and the cross-entropy. Stores all logits.
Tensor classifier_loss(const Arg& x_rd, const Arg& w_vd, const Arg& bias_v, const Tensor& targets_r);

// r_bncC = p_bcn M_n p_bCn^T: the scores of a metric, with full matrices M [n k k].
Tensor metric_scores(const Arg& p_bcd, const Arg& M_nkK);

// c_mn = sum_k a_mk b_kn, in three loops, in f64 on the CPU. Not recorded.
Tensor matrix_product(const Tensor& a_mk, const Tensor& b_kn);

// The version between the definition of shift_and_sum and its walks of three levels (ops/shift_and_sum/walk.h): computes one level after
// another, in place. A level runs from the last position to the first, so it uses only values of the level before. In f64 on the CPU, with
// coefficients [b c heads R]. Not recorded.
Tensor shift_and_sum(const Tensor& v_bcd, const Tensor& coef_bcx, int64_t heads);

}  // namespace ricci::first_rungs
