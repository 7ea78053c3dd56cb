// Means over adjacent positions: the simplest mixer, without weights to learn.
#pragma once
#include "autograd/arg.h"

namespace ricci {

// The positions of a mean around position c of a sequence:
//   causal      c - window + 1 .. c
//   not causal  c - (window - 1) / 2 .. c + (window - 1) / 2
// Positions outside the sequence and padding are left out.
struct MeanWindow {
  int64_t window = 3;
  bool causal = true;
};

// y_bcd = mean of x_btd over the positions t around c, minus x_bcd: the mixer of PoolFormer (Yu et al. 2022). With lengths_b (i64, each 0
// .. c), positions from lengths_b[b] on are padding; a mean over no position is 0. The cost grows with the window.
// Errors: the window is below 1, or even and not causal; a length is outside 0 .. c (on cuda it is clamped to 0 .. c, to avoid waiting
// for the GPU).
Tensor window_mean_difference(const Arg& x_bcd, const MeanWindow& window, const Arg& lengths_b = Tensor());

// y_bd = mean of x_bcd over the positions without padding; 0 if all are padding. lengths_b and errors as above.
Tensor mean_over_positions(const Arg& x_bcd, const Arg& lengths_b = Tensor());

}  // namespace ricci
