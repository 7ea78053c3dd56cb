// A language model of several scales: token embeddings without positions, a body that makes of them what the last block of the
// finest scale gives, and the map to the vocabulary. A body has
//   body(e_bcd, lengths_b)       whole sequences -> [b c d]
//   State, make_state            what decoding remembers
//   body.advance(e_bcd, state)   the next tokens
//   scored_from()                the first position that the loss counts
//   representations, masks       for people to look at: models/inspection
//   each_scale(e_bcd, lengths_b) where coarse scales have a loss of their own: what each gives, body(e_bcd, lengths_b) first
//   visit, recompute_blocks      as every module, every family
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "models/embedding.h"
#include "models/families/output.h"
#include "models/inputs.h"
#include "models/inspection/masks.h"
#include "models/inspection/representations.h"
#include "models/scales/bag_loss.h"
#include "ops/elements/arithmetic.h"

namespace ricci {

template <class Body> struct LanguageModel {
  EmbeddingConfig embedding_config;
  Table tok;
  Body body;
  Output output;
  int64_t ctx;

  LanguageModel(int64_t vocab, const EmbeddingConfig& embedding, const OutputConfig& of_output, const MixerShape& place, Body of_scales)
      : embedding_config(embedding),
        tok(vocab, place.d, place.init.tokens()),
        body(std::move(of_scales)),
        output(vocab, of_output, place),
        ctx(place.ctx) {}

  Tensor logits(const Inputs& inputs) const { return output.logits(hidden(inputs), tok); }  // [b c v]

  // models/inspection/representations.h
  std::vector<Representation> representations(const Inputs& inputs) const {
    return body.representations(embedded(inputs), inputs.lengths_b);
  }
  std::vector<Mask> masks(int64_t tokens) const { return body.masks(tokens); }

  // Mean nats over targets other than -1 of the positions that are scored, f64 []; of none: 0.
  Tensor text_loss(const Inputs& inputs) const {
    check_targets(inputs.targets, inputs.ids_bc);
    return text_loss(hidden(inputs), inputs.targets);
  }
  // That, and of every coarse scale with a weight the weighted bag_loss of its cells.
  Tensor loss(const Inputs& inputs) const {
    if constexpr (requires { body.each_scale(Tensor(), Tensor()); }) {
      check_targets(inputs.targets, inputs.ids_bc);
      std::vector<Tensor> h_s = body.each_scale(embedded(inputs), inputs.lengths_b);
      Tensor sum = text_loss(std::move(h_s[0]), inputs.targets);
      for (size_t i = 1; i < h_s.size(); ++i)
        if (const auto& scale = body.scales[i]; h_s[i] && scale.bag_weight > 0)
          sum = sum + bag_loss(h_s[i], output, tok, inputs, scale.tokens) * scale.bag_weight;
      return sum;
    } else return text_loss(inputs);
  }
  int64_t counted(const Inputs& inputs, int64_t targets) const {
    return body.scored_from() == 0 ? targets : targets_in(inputs.targets, body.scored_from());
  }

  struct State {
    typename Body::State of_body;
    int64_t position = 0;
  };
  State init_state(int64_t batch) const { return {body.make_state(batch, tok.weight.value.dtype(), tok.weight.value.device())}; }
  Tensor advance(const Tensor& ids_bc, State& state) const { return output.last_logits(read(ids_bc, state), tok); }
  Tensor advance_all(const Tensor& ids_bc, State& state) const { return output.logits(read(ids_bc, state), tok); }

  void recompute_blocks(bool on) { body.recompute_blocks(on); }
  template <class V> void visit(V&& v) {
    v("tok", tok);
    body.visit(v);
    v("head", output.head);
  }

 private:
  Tensor scored(const Arg& x) const {  // without the positions that the loss leaves out
    const int64_t length = x.shape()[1], first = std::min(body.scored_from(), length);
    return slice(x, 1, first, length - first);
  }
  Tensor text_loss(Tensor h_bcd, const Tensor& targets_bc) const {
    if (body.scored_from() == 0) return output.loss(h_bcd, tok, targets_bc);
    h_bcd = scored(h_bcd);  // so that the whole of it is freed before the loss asks for more memory
    return output.loss(h_bcd, tok, scored(targets_bc));
  }
  Tensor embedded(const Inputs& inputs) const {
    check_positions(inputs.ids_bc.shape()[1], ctx);
    return embed(inputs.ids_bc, tok, embedding_config);
  }
  Tensor hidden(const Inputs& inputs) const { return body(embedded(inputs), inputs.lengths_b); }
  Tensor read(const Tensor& ids_bc, State& state) const {
    const int64_t length = ids_bc.shape()[1];
    if (length == 0) fail("model: no position to read");
    check_positions(state.position + length, ctx);
    const Tensor x_bcd = body.advance(embed(ids_bc, tok, embedding_config), state.of_body);
    state.position += length;
    return x_bcd;
  }
};

}  // namespace ricci
