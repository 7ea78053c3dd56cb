#pragma once
#include <array>

#include "autograd/arg.h"

namespace ricci {

// y = gain_d * (x - mean) / sqrt(variance + eps) + bias_d over the innermost index; x_rd is [... d]. An empty bias_d adds nothing.
// (Ba et al. 2016.) A row is NaN if its variance overflows.
// Errors: gain or bias has the wrong width, inputs differ in dtype or device.
Tensor layer_norm(const Arg& x_rd, const Arg& gain_d, const Arg& bias_d, double eps = 1e-5);

// {s, layer_norm(s)} with s = x + branch, in one pass over memory. A transformer passes s around the next block and the norm into that
// block. Errors: as for layer_norm; the shapes of x and branch differ.
std::array<Tensor, 2> residual_layer_norm(const Arg& x_rd, const Arg& branch_rd, const Arg& gain_d, const Arg& bias_d, double eps = 1e-5);

}  // namespace ricci

// The ladder. The milliseconds are for x + branch and its norm, 32,768 rows of 256, on one core of an AMD EPYC (Zen 5, 2026-11-24,
// `ricci-bench-rungs layer_norm --threads 1`); the floor is 2.1 ms in f32. The version with a minus needs a GPU and was not measured.
//                                  lines        ms  gain
//   ops/first_rungs.cpp              105       8.1  sum, mean, difference, rms_norm and bias as recorded ops: a pass over memory for each
//   ops/rows/layer_norm.cu           166       4.0  row and column verbs: the sum and the norm in one pass over memory
//   ops/rows/layer_norm_pieces.cu    261         -  bf16 on a GPU: a warp reads its row once, 16 bytes at a time, and keeps it in registers
