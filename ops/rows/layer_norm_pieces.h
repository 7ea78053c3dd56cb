// Layer norm of rows of bf16 on the GPU, a warp to a row, which it reads once, 16 bytes at a time, and keeps in registers.
// The formulas are in layer_norm.cu, which does the rows that do not fit.
#pragma once
#include <cstdint>

#include "core/tensor.h"

namespace ricci::layer_norm_kernels {

struct Bf16Rows {
  int64_t rows, d;
  const bf16 *x_rd, *branch_rd;  // branch_rd is null: no residual, and s_rd is x_rd
  const bf16 *gain_d, *bias_d;   // bias_d is null: no bias
  bf16 *s_rd, *y_rd;
  float *mean_r, *rstd_r;
  float eps;
};

struct Bf16RowsBackward {
  int64_t rows, d;
  const bf16 *dy_rd, *ds_rd, *s_rd;  // ds_rd is null: no residual
  const bf16* gain_d;
  const float *mean_r, *rstd_r;
  bf16* dx_rd;
  float *dgain_d, *dbias_d;  // dbias_d is null: no bias
};

// False, with nothing done: d is no multiple of 8 or above 2048, or something does not begin on 16 bytes.
bool norm_pieces(const char* name, Device device, const Bf16Rows& norm);
// dx, dgain and dbias in one pass over the rows.
bool norm_pieces_backward(const char* name, Device device, const Bf16RowsBackward& norm);

}  // namespace ricci::layer_norm_kernels
