// Metric tensors of attention. A metric is a symmetric k x k matrix M_n for every head n, stored as a packed
// triangle m_nl, l = 0 .. k (k + 1) / 2 - 1 (packing.h): its own upper triangle, or the lower triangle of a factor L with
// M = L L^T, which makes it positive semi-definite. p_bcd are projections, of every head k neighbouring columns.
//   times_metric.cpp   p M, by which attention with a metric becomes attention: q = p M, keys p
//   scores.cu          the scores p M p^T themselves, summed over the packed entries
//   unpack.cu          between packed and whole matrices
#pragma once
#include "autograd/arg.h"
#include "ops/metric/packing.h"

namespace ricci {

// q_bcd with q = p M_n in the columns of head n.
// Errors: a number of entries that is no triangle's; columns of p that are not those of the heads; another dtype or device.
Tensor times_metric(const Arg& p_bcd, const Arg& m_nl, Triangle triangle);

// r_bncC = sum over k, k' of M_kk' p_ck p_Ck', for every pair of positions c and C, in the packed form of MetaFormer's kernel with
// its factors corrected: what the above is tested against, and what tables of scores are made of. Errors: those of
// times_metric.
Tensor metric_scores(const Arg& p_bcd, const Arg& m_nl, Triangle triangle);

// The whole matrices M_nkK [n k k] of a metric. Not recorded. Error: a number of entries that is no triangle's.
Tensor whole_metric(const Tensor& m_nl, Triangle triangle);

}  // namespace ricci
