// A body turns token embeddings into the input of the model's last linear map. Most families differ only in the body. They share the
// embedding before it (Shell) and the map after it (Output). A Stack is a body. A body is a struct with
//   body(e_bcd, lengths_b)   full sequences -> h_bcd; lengths_b as in Batch
//   positions()              the rows added to the embeddings; empty if the body adds positions itself or uses none
//   State                    its memory of earlier tokens; make_state(batch, dtype, device) makes an empty one
//   advance(e_bcd, state)    the next tokens -> h_bcd, at most positions_at_once() per call
//   each_attention(f)        f(tokens per cell, layer) for every layer that exchanges information between positions: a Stack, a
//                            ScaleAttention or a Join. Used by inspection and recomputation
//   visit                    as in every module
#pragma once
#include <algorithm>
#include <vector>

#include "models/layers/embedding.h"
#include "models/layers/stack.h"
#include "models/layers/targets.h"
#include "ops/products/products.h"

namespace ricci {

template <class B>
concept Body = requires(const B body, const Tensor& e_bcd, const Tensor& lengths_b, typename B::State& state, Dtype dtype, Device device) {
  { body(e_bcd, lengths_b) } -> std::same_as<Tensor>;
  { body.positions() } -> std::same_as<Arg>;
  { body.make_state(int64_t{}, dtype, device) } -> std::same_as<typename B::State>;
  { body.advance(e_bcd, state) } -> std::same_as<Tensor>;
  { body.positions_at_once() } -> std::same_as<int64_t>;
};

// Visits the parameters of a body. In a single stack, their paths have no prefix, and the norm is called ln_f, as in GPT-2.
template <class B, class V> void visit_body(B& body, V&& v) { body.visit(v); }
template <Mixer M, class V> void visit_body(Stack<M>& stack, V&& v) { v("pos", stack.pos, "blocks", stack.blocks, "ln_f", stack.ln); }

// Token embeddings and a body, the common part of all models.
template <Body B> struct Shell {
  Tensor embedded(const Tensor& ids_bc) const {  // the input of the body [b c d]
    check_positions(ids_bc.shape()[1]);
    return embed(ids_bc, tok, body.positions(), embedding_config);
  }
  Tensor hidden(const Batch& batch) const { return body(embedded(batch.ids_bc), batch.lengths_b); }  // the input of the last map

  EmbeddingConfig embedding_config;
  Table tok;
  B body;
  int64_t ctx;

  Shell(int64_t vocab, const EmbeddingConfig& embedding, const MixerShape& shape, B made)
      : embedding_config(embedding), tok(vocab, shape.d, shape.init.tokens()), body(std::move(made)), ctx(shape.ctx) {}

  struct State {
    typename B::State body;
    int64_t position = 0;
  };
  State init_state(int64_t batch) const { return {body.make_state(batch, tok.weight.value.dtype(), tok.weight.value.device())}; }

  template <class F> void each_attention(const F& f) { body.each_attention(f); }

 protected:
  void check_positions(int64_t length) const {
    if (length > ctx) fail("model: the input has {} positions, expected at most {} (the context)", {length, ctx});
  }
  // Reads the next tokens, at most positions_at_once() per call of the body. Returns the body's output for the last call.
  Tensor read(const Tensor& ids_bc, State& state) const {
    const int64_t length = ids_bc.shape()[1], at_once = body.positions_at_once();
    if (length == 0) fail("model: no token was given");
    check_positions(state.position + length);
    Tensor h_bcd;
    for (int64_t first = 0; first < length; first += at_once) {
      const int64_t count = std::min(at_once, length - first);
      const Tensor next_bc = slice(ids_bc, 1, first, count);
      h_bcd = body.advance(embed(next_bc, tok, body.positions(), embedding_config, state.position), state.body);
      state.position += count;
    }
    return h_bcd;
  }
};

// The last map of every language model, to the vocabulary.
//   logits_bcv = x_bcd W_vd^T + bias_v,   W = tok.weight when tied
struct OutputConfig {
  bool tie = true;
  bool head_bias = false;
};

struct Output {
  Tensor logits(const Arg& x_bcd, const Table& tok) const { return linear(x_bcd, weight(tok), head.bias); }
  Tensor last_logits(const Tensor& x_bcd, const Table& tok) const {  // after the last position, [b v]
    const int64_t b = x_bcd.shape()[0], c = x_bcd.shape()[1], d = x_bcd.shape()[2];
    return logits(reshape(slice(x_bcd, 1, c - 1, 1), {b, d}), tok);
  }
  // The mean nats over targets other than -1, an f64 scalar.
  Tensor loss(const Arg& x_bcd, const Table& tok, const Tensor& targets_bc) const {
    const int64_t rows = targets_bc.size();
    const Arg bias_v = head.bias,
              w_vd = weight(tok);  // named: the evaluation order of arguments, and so the order on the tape, is unspecified
    return classifier_loss(reshape(x_bcd, {rows, x_bcd.shape()[2]}), w_vd, bias_v, targets_bc.reshaped({rows}));
  }

  Linear head;  // weight is empty when tied to tok

  Output(int64_t vocab, const OutputConfig& config, const MixerShape& shape) {
    if (!config.tie) head = Linear(shape.d, vocab, config.head_bias, shape.init.output());
    if (config.tie && config.head_bias) head.bias.value = Tensor({vocab});
  }

 private:
  const Parameter& weight(const Table& tok) const { return head.weight.value ? head.weight : tok.weight; }
};

inline void visit_fields(OutputConfig& c, const Fields& field) {
  field("tie", c.tie, "the output map shares the embedding table (preset)").follows();
  field("head_bias", c.head_bias, "the output map has a bias (preset)").follows();
}

}  // namespace ricci
