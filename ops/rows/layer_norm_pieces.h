// Layer norm of rows of bf16 on the GPU: a warp reads its row once, 16 bytes at a time, and keeps it in registers. layer_norm.cu defines
// the formulas and handles all other rows.
#pragma once
#include "core/tensor.h"

namespace ricci::layer_norm_kernels {

struct Normed {
  Tensor s, y, mean_r, rstd_r;  // s: the rows that are normalised, x or x + branch
};
struct NormGrads {
  Tensor dx, dgain_d, dbias_d;
};

// branch, bias_d, ds and dbias_d can be empty. Both functions do nothing and return false for other dtypes or devices, if d is not a
// multiple of 8 or is above 2048, or if a tensor does not begin on a 16-byte boundary.
bool forward_in_pieces(
    const char* name, const Tensor& x, const Tensor& branch, const Tensor& gain_d, const Tensor& bias_d, double eps, const Normed& out);
// Computes dx, dgain and dbias in one pass over the rows.
bool backward_in_pieces(
    const char* name, const Tensor& dy, const Tensor& ds, const Normed& kept, const Tensor& gain_d, const NormGrads& out);

}  // namespace ricci::layer_norm_kernels
