// What every language model ends with: the map of what its last block gives to the vocabulary.
//   logits_bcv = x_bcd W_vd^T + bias_v,   W = tok.weight when tied
#pragma once
#include <concepts>

#include "core/dims.h"
#include "core/fields.h"
#include "models/layers.h"
#include "models/mixers/mixer.h"
#include "ops/products/classifier.h"
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
  Linear head;  // weight is empty when tied to tok

  Output(int64_t vocab, const OutputConfig& config, const MixerShape& place) {
    if (!config.tie) head = Linear(place.d, vocab, config.head_bias, place.init.output());
    if (config.tie && config.head_bias) head.bias.value = Tensor({vocab});
  }

  Tensor logits(const Arg& x_bcd, const Table& tok) const { return linear(x_bcd, weight(tok), head.bias); }
  Tensor last_logits(const Tensor& x_bcd, const Table& tok) const {  // behind the last position, [b v]
    const int64_t b = x_bcd.shape()[0], c = x_bcd.shape()[1], d = x_bcd.shape()[2];
    return logits(reshape(slice(x_bcd, 1, c - 1, 1), {b, d}), tok);
  }
  // Mean nats over targets other than -1, f64 [].
  Tensor loss(const Arg& x_bcd, const Table& tok, const Tensor& targets_bc) const {
    const int64_t rows = targets_bc.size();
    return classifier_loss(reshape(x_bcd, {rows, x_bcd.shape()[2]}), weight(tok), head.bias, targets_bc.reshaped({rows}));
  }

 private:
  const Parameter& weight(const Table& tok) const { return head.weight.value ? head.weight : tok.weight; }
};

}  // namespace ricci
