#pragma once
#include "autograd/arg.h"

namespace ricci {

// Cells of a scale: cell j of x_bcd is its positions j size .. (j + 1) size - 1, without gaps. Positions behind the last whole
// cell are in none, so there are m = c / size cells, rounded down; m may be 0.

// y_bmd: the mean, or the largest element, of every cell, column by column. The gradient of the largest goes to the first of
// equal ones; where a cell holds a NaN, so does y. Error: a size below 1.
Tensor cell_mean(const Arg& x_bcd, int64_t size);
Tensor cell_max(const Arg& x_bcd, int64_t size);

// What a convolution with stride `size` multiplies: y_bmz, z = d * kernel + q, holds in column (d, q) the column d of position q
// of the window of cell j. A window is `kernel` positions that end with the cell; those before the sequence are 0. The first
// `history` positions are in no cell, but in windows: what came before, where a sequence is read in several calls. A convolution
// is linear(cell_windows(x_bcd), weight_fdq as a matrix, bias_f).
// Errors: a size below 1, a kernel below the size, a history below 0 or beyond the sequence.
Tensor cell_windows(const Arg& x_bcd, int64_t size, int64_t kernel, int64_t history = 0);

// How many whole cells sequences of these lengths have: lengths_b / size, rounded down. i64, without gradient.
// Error: a size below 1.
Tensor whole_cells(const Tensor& lengths_b, int64_t size);

// How many positions of each sequence are text, where targets_bc are the tokens that follow, -1 behind the end of the text: up to
// the token that the last target is, but not more than c. i64 [b], without gradient.
Tensor text_lengths(const Tensor& targets_bc);

}  // namespace ricci
