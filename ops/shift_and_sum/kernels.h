// The implementations of the shift-and-sum as the host calls them.
#pragma once
#include "core/tensor.h"
#include "ops/shift_and_sum/gpu/parts.h"
#include "ops/shift_and_sum/shift_and_sum.h"

namespace ricci::shift_and_sum_kernels {

// Checks the arguments of the public ops (throws) and makes a Problem of them. Takes one random stream where there
// is dropout.
Problem check(const char* op, const Tensor& v_bcd, const Tensor& coef_bcx, const ShiftAndSumOptions& options);

// No extent is 0. `partial` is described in problem.h; its number of slices is the implementation's.
void forward_cpu(const Problem& problem, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd);
void backward_cpu(
    const Problem& problem, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& dv_bcd, const Tensor& partial);
int64_t gradient_slices_cpu(const Problem& problem);

// On cuda and cuda_emulated, in the parts of a plan, which is one for the forward or one for the backward.
void forward_gpu(const Problem& problem, const Plan& plan, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd);
void backward_gpu(const Problem& problem, const Plan& plan, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx,
    const Tensor& dv_bcd, const Tensor& partial);
inline int64_t gradient_slices_gpu(const Problem& problem) { return (problem.width + kColumns - 1) / kColumns; }
// One part of it; the backward also computes the input of the later parts with it.
void forward_part(const Problem& problem, const Part& part, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd);

// dcoef = the sum of the slices; 0 for the levels that are not used.
void sum_slices(const Problem& problem, const Tensor& partial, const Tensor& dcoef_bcx);

}  // namespace ricci::shift_and_sum_kernels
