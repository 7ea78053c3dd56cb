// The end of every language model: the map of what its last block gives to the vocabulary.
//   logits_bcv = x_bcd W_vd^T + bias_v,   W = tok.weight when tied
#pragma once
#include <concepts>

#include "core/dims.h"
#include "core/fields.h"
#include "models/layers/inputs.h"
#include "models/layers/layers.h"
#include "models/layers/mixer.h"
#include "ops/products/products.h"
#include "ops/scales/cells.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

struct OutputConfig {
  bool tie = true;
  bool head_bias = false;
  bool operator==(const OutputConfig&) const = default;
};

inline void visit_fields(OutputConfig& c, const Fields& field) {
  field("tie", c.tie, "the output map is the embedding table (preset)").follows();
  field("head_bias", c.head_bias, "the output map has a bias (preset)").follows();
}

struct Output {
  Tensor logits(const Arg& x_bcd, const Table& tok) const { return linear(x_bcd, weight(tok), head.bias); }
  Tensor last_logits(const Tensor& x_bcd, const Table& tok) const {  // after the last position, [b v]
    const int64_t b = x_bcd.shape()[0], c = x_bcd.shape()[1], d = x_bcd.shape()[2];
    return logits(reshape(slice(x_bcd, 1, c - 1, 1), {b, d}), tok);
  }
  // Mean nats over targets other than -1, f64 [].
  Tensor loss(const Arg& x_bcd, const Table& tok, const Tensor& targets_bc) const {
    const int64_t rows = targets_bc.size();
    return classifier_loss(reshape(x_bcd, {rows, x_bcd.shape()[2]}), weight(tok), head.bias, targets_bc.reshaped({rows}));
  }

  Linear head;  // weight is empty when tied to tok

  Output(int64_t vocab, const OutputConfig& config, const MixerShape& shape) {
    if (!config.tie) head = Linear(shape.d, vocab, config.head_bias, shape.init.output());
    if (config.tie && config.head_bias) head.bias.value = Tensor({vocab});
  }

 private:
  const Parameter& weight(const Table& tok) const { return head.weight.value ? head.weight : tok.weight; }
};

// The number of tokens of each sequence that are text; empty: all. Targets, where they are given, are -1 from the end of the text on.
inline Tensor text_lengths_of(const Inputs& inputs) {
  if (inputs.lengths_b || !inputs.targets) return inputs.lengths_b;
  check_targets(inputs.targets, inputs.ids_bc);
  return text_lengths(inputs.targets);
}

// The loss of a coarse scale, whose cells say which tokens are in the next cell, in whatever order (a bag of words): mean nats per token
// of the next cell, over the cells followed by a whole one, f64 []. h_bmd is what the blocks of the scale gave.
inline Tensor bag_loss(const Arg& h_bmd, const Output& output, const Table& tok, const Inputs& inputs, int64_t scale) {
  return bag_cross_entropy(output.logits(h_bmd, tok), inputs.ids_bc, scale, text_lengths_of(inputs));
}

}  // namespace ricci
