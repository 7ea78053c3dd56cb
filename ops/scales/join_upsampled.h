#pragma once
#include "autograd/arg.h"

namespace ricci {

// A sequence beside a coarser one, which is upsampled by a transposed convolution of stride and kernel r and shifted:
//   y_bce = [a_bcd ; u_bcd],   e = 2 d,   u_c = z_j(q) + bias_d,   j r + q = c - shift, q = 0 .. r-1;   u_c = 0 where there is no such j
// z_bmx = contract("bmi,ix->bmx", h_bmi, weight_idq as a matrix) holds row q of what cell j gives in the columns x = d r + q.
// A negative shift begins in the middle of z. Cells that no row reads get a gradient of zero.
// Errors: a width of z that is no multiple of that of a, no column.
Tensor join_upsampled(const Arg& a_bcd, const Arg& z_bmx, const Arg& bias_d, int64_t shift);

}  // namespace ricci
