// What a coarse scale says of the next cell: which tokens are in it, in whatever order (a bag of words). The whole loss of a coarse
// model, and of a top-down model a part of the loss that it is trained with.
//   logits_bmv = h_bmd W_vocab^T,   loss: bag_cross_entropy
#pragma once
#include "models/families/output.h"
#include "models/inputs.h"
#include "ops/scales/bag_cross_entropy.h"
#include "ops/scales/cells.h"

namespace ricci {

// How many tokens of each sequence are text; empty: all. Targets, where they are given, tell where it ends: they are -1 from there on.
inline Tensor text_lengths_of(const Inputs& inputs) {
  if (inputs.lengths_b || !inputs.targets) return inputs.lengths_b;
  check_targets(inputs.targets, inputs.ids_bc);
  return text_lengths(inputs.targets);
}

// Mean nats per token of the next cell, over the cells with a whole one behind them, f64 []. h_bmd is what the blocks of a scale gave.
inline Tensor bag_loss(const Arg& h_bmd, const Output& output, const Table& tok, const Inputs& inputs, int64_t scale) {
  return bag_cross_entropy(output.logits(h_bmd, tok), inputs.ids_bc, scale, text_lengths_of(inputs));
}

}  // namespace ricci
