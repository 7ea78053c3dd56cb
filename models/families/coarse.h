// family: coarse. A language model of one coarse scale alone (Subramanian et al. 2020, section 6.2): from the cells of `scale` tokens that
// have been read it says which tokens are in the next one, in whatever order.
//   h_bmd = T(D(e, scale)),   logits_bmv = h W_vocab^T,   loss: bag_cross_entropy
#pragma once
#include <algorithm>
#include <string>

#include "models/embedding.h"
#include "models/families/output.h"
#include "models/inputs.h"
#include "models/inspection/masks.h"
#include "models/inspection/representations.h"
#include "models/scales/bag_loss.h"
#include "models/scales/down.h"
#include "models/scales/scale_list.h"

namespace ricci {

struct CoarseConfig {
  int64_t scale = 4;
  bool operator==(const CoarseConfig&) const = default;
};

inline void visit_fields(CoarseConfig& c, const Fields& field) { field("scale", c.scale, "tokens per cell").in(1, Visibility::kMaxTokens); }

struct Coarse {
  EmbeddingConfig embedding_config;
  Table tok;
  Downsample down;
  Stack<Sdp> stack;
  Output output;
  int64_t scale, ctx;

  Coarse(int64_t vocab, const EmbeddingConfig& embedding, const OutputConfig& of_output, const StacksConfig& c, int64_t layers,
      const DownConfig& of_down, const CoarseConfig& config)
      : embedding_config(embedding),
        tok(vocab, c.place.d, c.place.init.tokens()),
        down(of_down, config.scale, c.place.d, c.place.init),
        stack(c.at(config.scale, layers)),
        output(vocab, of_output, c.place),
        scale(config.scale),
        ctx(c.place.ctx) {}

  Tensor logits(const Inputs& inputs) const {  // behind every whole cell, [b m v]
    return output.logits(hidden(inputs), tok);
  }
  // models/inspection
  std::vector<Representation> representations(const Inputs& inputs) const { return {{scale, hidden(inputs)}}; }
  std::vector<Mask> masks(int64_t tokens) const {
    return scale <= tokens ? std::vector{attention_mask(stack.blocks[0].mixer.attending, scale, tokens)} : std::vector<Mask>();
  }

  // Mean nats per token of the next cell, over the cells with a whole one behind them, f64 []. Targets, where they are given, only
  // tell where the text of a sequence ends: -1 from there on.
  Tensor loss(const Inputs& inputs) const { return bag_loss(hidden(inputs), output, tok, inputs, scale); }

  int64_t counted(const Inputs& inputs, int64_t) const {  // tokens of the cells behind others
    const int64_t batch = inputs.ids_bc.shape()[0];
    const Tensor lengths_b = text_lengths_of(inputs), host_b = lengths_b ? to(lengths_b, Device::cpu) : Tensor();
    int64_t tokens = 0;
    for (int64_t b = 0; b < batch; ++b)
      tokens += std::max<int64_t>(0, (host_b ? host_b.data<int64_t>()[b] : inputs.ids_bc.shape()[1]) / scale - 1) * scale;
    return tokens;
  }

  // Decoding. The logits behind the last whole cell, of which there must be one; advance_all: those behind the new ones [b m v].
  struct State {
    Downsample::State down{};
    Stack<Sdp>::State stack;
    int64_t position = 0;
    Tensor last_bmd{};  // what the stack gave for the last cells
  };
  State init_state(int64_t batch) const { return {.stack = stack.make_state(batch, tok.weight.value.dtype(), tok.weight.value.device())}; }
  Tensor advance(const Tensor& ids_bc, State& state) const {
    read(ids_bc, state);
    if (!state.last_bmd) fail("model: no cell of {} tokens is complete after {}", {scale, state.position});
    return output.last_logits(state.last_bmd, tok);
  }
  Tensor advance_all(const Tensor& ids_bc, State& state) const {
    const Tensor h_bmd = read(ids_bc, state);
    return output.logits(h_bmd ? h_bmd : no_cells(ids_bc), tok);
  }

  void recompute_blocks(bool on) { stack.recomputes_blocks = on; }
  template <class V> void visit(V&& v) {
    const std::string name = "." + std::to_string(scale);
    v("tok", tok), v("down" + name, down), v("stack" + name, stack), v("head", output.head);
  }

 private:
  Tensor hidden(const Inputs& inputs) const {  // of every whole cell, [b m d]
    check_positions(inputs.ids_bc.shape()[1], ctx);
    const Tensor x_bmd = down(embed(inputs.ids_bc, tok, embedding_config));
    return x_bmd ? through(stack, x_bmd, inputs.lengths_b, scale) : no_cells(inputs.ids_bc);
  }
  Tensor no_cells(const Tensor& ids_bc) const {
    const Tensor& table = tok.weight.value;
    return zeros({ids_bc.shape()[0], 0, table.shape()[1]}, table.dtype(), table.device());
  }
  // What the stack gives for the cells that the next tokens complete; empty: none.
  Tensor read(const Tensor& ids_bc, State& state) const {
    const int64_t length = ids_bc.shape()[1];
    if (length == 0) fail("model: no position to read");
    check_positions(state.position + length, ctx);
    state.position += length;
    const Tensor x_bmd = down.advance(embed(ids_bc, tok, embedding_config), state.down);
    if (!x_bmd) return {};
    return state.last_bmd = through(stack, x_bmd, state.stack);
  }
};

}  // namespace ricci
