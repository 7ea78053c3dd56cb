// Where a processor multiplies bf16 by tiles (AMX), oneDNN does so if a, b and c lie without gaps, and takes two to three times as long
// otherwise.
#pragma once
#include "cuda/gemm/gemm.h"

namespace ricci::onednn {

// Whether a product whose c is bf16 is to be made by tiles. Its pieces are rows of a and c, and the whole of b: they have
// no gaps where a, b and c have none.
bool suits_tiles(const Gemm& g);
// How many rows the pieces of such a product have, where about `wanted` pieces are to be made.
int64_t rows_for_tiles(const Gemm& g, int64_t wanted);

// Gradients of weights, long sums of f32: parts of a and b are copied where they have gaps. False, with nothing done: another product, or
// a processor without tiles.
bool multiply_by_tiles(const Gemm& g);

}  // namespace ricci::onednn
