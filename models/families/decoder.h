// family: decoder. A language model: token embeddings, a stack of blocks around one mixer, a linear map to the vocabulary.
//   logits_bcv = stack(embed(ids))_bcd W_vd^T + bias_v,   W = tok.weight when tied
#pragma once
#include "models/embedding.h"
#include "models/families/output.h"
#include "models/inputs.h"
#include "models/stack.h"

namespace ricci {

template <Mixer M> struct Decoder {
  EmbeddingConfig embedding_config;
  Table tok;
  Stack<M> stack;
  Output output;
  MixerShape place;

  Decoder(int64_t vocab, const EmbeddingConfig& embedding, const OutputConfig& of_output, const StackConfig<M>& c)
      : embedding_config(embedding),
        tok(vocab, c.place.d, c.place.init.tokens()),
        stack(c),
        output(vocab, of_output, c.place),
        place(c.place) {}

  Tensor embedded(const Inputs& inputs) const {  // what the first block reads, [b c d]
    check_positions(inputs.ids_bc.shape()[1], place.ctx);
    return embed(inputs.ids_bc, tok, stack.pos, embedding_config);
  }
  Tensor hidden(const Inputs& inputs) const { return stack(embedded(inputs), inputs.lengths_b); }  // what the head reads, [b c d]
  Tensor logits(const Inputs& inputs) const { return output.logits(hidden(inputs), tok); }         // [b c v]

  // Mean nats over targets other than -1, f64 []: the targets of padding too, unless they are -1.
  Tensor loss(const Inputs& inputs) const {
    check_targets(inputs.targets, inputs.ids_bc);
    return output.loss(hidden(inputs), tok, inputs.targets);
  }

  using State = typename Stack<M>::State;
  State init_state(int64_t batch) const {
    if (!place.causal) fail("model: only a causal model decodes token by token");
    return stack.make_state(batch, tok.weight.value.dtype(), tok.weight.value.device());
  }
  // Reads the next positions of every sequence. advance returns the logits behind the last of them [b v], advance_all those
  // of each [b c v].
  Tensor advance(const Tensor& ids_bc, State& state) const { return output.last_logits(read(ids_bc, state).back(), tok); }
  Tensor advance_all(const Tensor& ids_bc, State& state) const {
    std::vector<Arg> logits;
    for (const Tensor& x_bcd : read(ids_bc, state)) logits.push_back(output.logits(x_bcd, tok));
    return logits.size() == 1 ? logits[0] : concatenate(logits, 1);
  }

  void recompute_blocks(bool on) { stack.recomputes_blocks = on; }
  template <class V> void visit(V&& v) {
    v("tok", tok), v("pos", stack.pos), v("blocks", stack.blocks), v("ln_f", stack.ln), v("head", output.head);
  }

 private:
  // What the head reads of the next positions, as many at a time as the mixers take.
  std::vector<Tensor> read(const Tensor& ids_bc, State& state) const {
    const int64_t length = ids_bc.shape()[1], most = stack.positions_at_once();
    check_positions(state.position + length, place.ctx);
    std::vector<Tensor> x;
    for (int64_t first = 0; first < length; first += most) {
      const Tensor next_bc = slice(ids_bc, 1, first, std::min(most, length - first));
      x.push_back(stack.advance(embed(next_bc, tok, stack.pos, embedding_config, state.position), state));
    }
    if (x.empty()) fail("model: no position to read");
    return x;
  }
};

}  // namespace ricci
