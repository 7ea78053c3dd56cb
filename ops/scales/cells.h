#pragma once
#include "autograd/arg.h"

namespace ricci {

// Cells of a scale: cell j of x_bcd is its positions j size .. (j + 1) size - 1, without gaps. Positions after the last whole
// cell are in none, so there are m = c / size cells, rounded down; m may be 0.

// y_bmd: the mean, or the largest element, of every cell, column by column. The gradient of the largest goes to the first of
// equal ones; where a cell holds a NaN, so does y. Error: a size below 1.
Tensor cell_mean(const Arg& x_bcd, int64_t size);
Tensor cell_max(const Arg& x_bcd, int64_t size);

// The left factor of a convolution with stride `size`: y_bmz, z = d * kernel + q, holds in column (d, q) the column d of position q
// of the window of cell j. A window is `kernel` positions that end with the cell; those before the sequence are 0. The first
// `history` positions are in no cell, but in windows: what came before, where a sequence is read in several calls. A convolution
// is linear(cell_windows(x_bcd), weight_fdq as a matrix, bias_f).
// Errors: a size below 1, a kernel below the size, a history below 0 or beyond the sequence.
Tensor cell_windows(const Arg& x_bcd, int64_t size, int64_t kernel, int64_t history = 0);

// The number of whole cells in sequences of these lengths: lengths_b / size, rounded down. i64, without gradient.
// Error: a size below 1.
Tensor whole_cells(const Tensor& lengths_b, int64_t size);

// The number of positions of each sequence that are text, where targets_bc are the tokens that follow, -1 after the end of the text: up to
// the token that the last target is, but not more than c. i64 [b], without gradient.
Tensor text_lengths(const Tensor& targets_bc);

// A sequence beside a coarser one, which is upsampled by a transposed convolution of stride and kernel r and shifted:
//   y_bce = [a_bcd ; u_bcd],   e = 2 d,   u_c = z_j(q) + bias_d,   j r + q = c - shift, q = 0 .. r-1;   u_c = 0 where there is no such j
// z_bmx = contract("bmi,ix->bmx", h_bmi, weight_idq as a matrix) holds row q of what cell j gives in the columns x = d r + q.
// A negative shift begins in the middle of z. Cells that no row reads get a gradient of zero.
// Errors: a width of z that is no multiple of the width of a, no column.
Tensor join_upsampled(const Arg& a_bcd, const Arg& z_bmx, const Arg& bias_d, int64_t shift);

// The loss of cell j of `size` tokens for the tokens of the next one, in whatever order (a bag of words): the mean over cells
// of the cross-entropy against the uniform distribution over those tokens, in nats, as an f64 scalar:
//   loss = mean over (b, j) of -1/size sum over the tokens w of cell j + 1 of log softmax(logits_bj)[w]
// logits_bmv has the m = c / size whole cells of ids_bc. A cell counts when the next one is whole too: of c positions, and where
// lengths_b are given of the first lengths_b[b] of them. No counted cell: 0.
// Errors: a size below 1, another number of cells, an id outside the vocabulary (on the cpu; on other devices the loss is NaN
// then), a length outside 0 .. c (not on cuda).
Tensor bag_cross_entropy(const Arg& logits_bmv, const Arg& ids_bc, int64_t size, const Arg& lengths_b = Tensor());

}  // namespace ricci
