// family: decoder. A language model: token embeddings, a stack of blocks around one mixer, a linear map to the vocabulary.
//   logits_bcv = stack(embed(ids))_bcd W_vd^T + bias_v,   W = tok.weight when tied
#pragma once
#include "core/dims.h"
#include "models/embedding.h"
#include "models/inputs.h"
#include "models/stack.h"
#include "ops/products/classifier.h"
#include "ops/products/linear.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

// The map to the vocabulary.
struct OutputConfig {
  bool tie = true;
  bool head_bias = false;
  bool operator==(const OutputConfig&) const = default;
};

template <std::same_as<OutputConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  field("tie", c.tie, "the output map is the embedding table (preset)");
  field("head_bias", c.head_bias, "the output map has a bias (preset)");
}

template <Mixer M> struct Decoder {
  EmbeddingConfig embedding_config;
  Table tok;
  Stack<M> stack;
  Linear head;  // weight is empty when tied to tok
  MixerPlace place;

  Decoder(int64_t vocab, const EmbeddingConfig& embedding, const OutputConfig& output, const StackConfig<M>& c)
      : embedding_config(embedding), tok(vocab, c.place.d, c.place.init.tokens()), stack(c), place(c.place) {
    if (!output.tie) head = Linear(c.place.d, vocab, output.head_bias, c.place.init.output());
    if (output.tie && output.head_bias) head.bias.value = Tensor({vocab});
  }

  Tensor hidden(const Inputs& inputs) const {  // what the head reads, [b c d]
    check_length(inputs.ids_bc.shape()[1]);
    return stack(embed(inputs.ids_bc, tok, stack.pos, embedding_config), inputs.lengths_b);
  }
  Tensor logits(const Inputs& inputs) const { return linear(hidden(inputs), head_weight(), head.bias); }  // [b c v]

  // Mean nats over targets other than -1, f64 []: the targets of padding too, unless they are -1.
  Tensor loss(const Inputs& inputs) const {
    if (!(inputs.targets.shape() == inputs.ids_bc.shape()))
      fail("model: targets {} for ids {}", {show(inputs.targets.shape()), show(inputs.ids_bc.shape())});
    const int64_t rows = inputs.ids_bc.size();
    return classifier_loss(reshape(hidden(inputs), {rows, place.d}), head_weight(), head.bias, inputs.targets.reshaped({rows}));
  }

  using State = typename Stack<M>::State;
  State init_state(int64_t batch) const {
    if (!place.causal) fail("model: only a causal model decodes token by token");
    return stack.make_state(batch, tok.weight.value.dtype(), tok.weight.value.device());
  }
  // Reads the next positions of every sequence. advance returns the logits behind the last of them [b v], advance_all those
  // of each [b c v].
  Tensor advance(const Tensor& ids_bc, State& state) const {
    const std::vector<Tensor> x = read(ids_bc, state);
    const int64_t b = ids_bc.shape()[0], last = x.back().shape()[1] - 1;
    return linear(reshape(slice(x.back(), 1, last, 1), {b, place.d}), head_weight(), head.bias);
  }
  Tensor advance_all(const Tensor& ids_bc, State& state) const {
    std::vector<Arg> logits;
    for (const Tensor& x_bcd : read(ids_bc, state)) logits.push_back(linear(x_bcd, head_weight(), head.bias));
    return logits.size() == 1 ? logits[0] : concatenate(logits, 1);
  }

  template <class V> void visit(V&& v) { v("tok", tok), v("pos", stack.pos), v("blocks", stack.blocks), v("ln_f", stack.ln), v("head", head); }

 private:
  // What the head reads of the next positions, as many at a time as the mixers take.
  std::vector<Tensor> read(const Tensor& ids_bc, State& state) const {
    const int64_t length = ids_bc.shape()[1], most = stack.positions_at_once();
    check_length(state.position + length);
    std::vector<Tensor> x;
    for (int64_t first = 0; first < length; first += most) {
      const Tensor next_bc = slice(ids_bc, 1, first, std::min(most, length - first));
      x.push_back(stack.advance(embed(next_bc, tok, stack.pos, embedding_config, state.position), state));
    }
    if (x.empty()) fail("model: no position to read");
    return x;
  }
  const Parameter& head_weight() const { return head.weight.value ? head.weight : tok.weight; }
  void check_length(int64_t length) const {
    if (length > place.ctx) fail("model: {} positions, but the context it was built for is {}", {length, place.ctx});
  }
};

}  // namespace ricci
