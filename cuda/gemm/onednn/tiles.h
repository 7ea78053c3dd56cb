// Where a processor multiplies bf16 by tiles (AMX), oneDNN does so if a, b and c lie without gaps, and takes two to three times as long
// otherwise.
#pragma once
#include "cuda/gemm/gemm.h"

namespace ricci::onednn {

// Products whose c is bf16: b and c are cut across rows only, so that pieces have no gaps. Of how many rows, where about `wanted` pieces
// are to be made.
bool suits_tiles(const Gemm& g);
int64_t rows_for_tiles(const Gemm& g, int64_t wanted);

// Gradients of weights, long sums of f32: parts of a and b are copied where they have gaps. False, with nothing done: another product, or
// a processor without tiles.
bool multiply_by_tiles(const Gemm& g);

}  // namespace ricci::onednn
