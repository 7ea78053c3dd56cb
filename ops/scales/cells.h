// A coarser scale of a sequence: its cells, their means and maxima, the way back to single positions, and a loss for the next cell. A
// sequence of cells is shorter than its text by a factor of the cell size, so multi-scale models can use long texts.
#pragma once
#include "autograd/arg.h"

namespace ricci {

// Cell j of x_bcd consists of the positions j size .. (j + 1) size - 1. There are m = c / size cells, rounded down; m can be 0. Positions
// after the last full cell are in no cell.

// y_bmd: the mean, or the largest element, of every cell, column by column. The gradient of the largest goes to the first of equal
// elements. If a cell contains a NaN, y is NaN. Error: the size is below 1.
Tensor cell_mean(const Arg& x_bcd, int64_t size);
Tensor cell_max(const Arg& x_bcd, int64_t size);

// The left factor of a convolution with stride `size`: column (d, q) of y_bmz, z = d * kernel + q, is column d of position q in the window
// of cell j. A window consists of the `kernel` positions that end with the cell; positions before the sequence are 0. The first `history`
// positions belong to windows but to no cell: they are the earlier part of a sequence that is processed in multiple calls. A convolution is
// linear(cell_windows(x_bcd), weight_fdq as a matrix, bias_f). Errors: the size is below 1, the kernel is below the size, the history is
// below 0 or beyond the sequence.
Tensor cell_windows(const Arg& x_bcd, int64_t size, int64_t kernel, int64_t history = 0);

// The number of full cells in sequences of these lengths: lengths_b / size, rounded down. Returns i64, without gradient.
// Error: the size is below 1.
Tensor whole_cells(const Tensor& lengths_b, int64_t size);

// The number of text positions in each sequence. targets_bc are the next tokens, with -1 after the end of the text. A text ends with the
// token that is its last target, but after c positions at most. Returns i64 [b], without gradient.
Tensor text_lengths(const Tensor& targets_bc);

// Joins a sequence with a coarser one that is upsampled by a transposed convolution of stride and kernel r and shifted:
//   y_bce = [a_bcd ; u_bcd],   e = 2 d,   u_c = z_j(q) + bias_d,   j r + q = c - shift, q = 0 .. r-1;   u_c = 0 if no such j exists
// z_bmx = contract("bmi,ix->bmx", h_bmi, weight_idq as a matrix) has row q of cell j in the columns x = d r + q. A negative shift starts in
// the middle of z. The gradient of cells that no row uses is zero.
// Errors: the width of z is not a multiple of the width of a, or a has no columns.
Tensor join_upsampled(const Arg& a_bcd, const Arg& z_bmx, const Arg& bias_d, int64_t shift);

// The loss of cell j of `size` tokens for the tokens of the next cell, in any order (a bag of words): the mean over cells of the
// cross-entropy against the uniform distribution over those tokens, in nats, as an f64 scalar:
//   loss = mean over (b, j) of -1/size sum over the tokens w of cell j + 1 of log softmax(logits_bj)[w]
// logits_bmv has the m = c / size full cells of ids_bc. A cell is scored if the next cell is also complete, that is, ends within the c
// positions (or the first lengths_b[b] of them). If no cell is scored, the loss is 0.
// Errors: the size is below 1, the number of cells is wrong, an id is outside the vocabulary (on devices other than the cpu the loss is
// then NaN), a length is outside 0 .. c (not checked on cuda).
Tensor bag_cross_entropy(const Arg& logits_bmv, const Arg& ids_bc, int64_t size, const Arg& lengths_b = Tensor());

}  // namespace ricci
