// family: coarse. A language model with only one coarse scale (Subramanian et al. 2020, section 6.2): from cells of `scale` tokens it
// predicts the tokens of the next cell, in any order.
//   h_bmd = T(D(e, scale)),   logits_bmv = h W_vocab^T,   loss: bag_cross_entropy
#pragma once
#include <algorithm>
#include <string>

#include "models/families/body.h"
#include "models/families/family.h"

namespace ricci {

struct CoarseConfig {
  int64_t scale = 4;
};

// Maps token embeddings to the blocks' output for every complete cell, [b m d].
struct CoarseBody {
  Tensor operator()(Tensor e_bcd, const Tensor& lengths_b) const {
    const Tensor x_bmd = down(e_bcd);
    if (!x_bmd) return no_cells(e_bcd);
    e_bcd = {};  // frees the embeddings before the stack allocates
    return through(stack, x_bmd, lengths_b, scale);
  }

  Downsample down;
  Stack<Sdp> stack;
  int64_t scale, ctx;

  CoarseBody(const ModelKeys& c, const CoarseConfig& config)
      : down(c.down, config.scale, c.d, shape_of(c).init), stack(stack_at(c, config.scale, c.layers)), scale(config.scale), ctx(c.ctx) {}

  struct State {
    Downsample::State down{};
    Stack<Sdp>::State stack;
    Tensor last_bmd{};  // the stack's output for the last cells
  };
  State make_state(int64_t batch, Dtype dtype, Device device) const { return {.stack = stack.make_state(batch, dtype, device)}; }
  // The stack's output for the cells that the next tokens complete.
  Tensor advance(const Tensor& e_bcd, State& state) const {
    const Tensor x_bmd = down.advance(e_bcd, state.down);
    if (!x_bmd) return no_cells(e_bcd);
    state.last_bmd = through(stack, x_bmd, state.stack);
    return state.last_bmd;
  }
  int64_t positions_at_once() const { return ctx; }
  Arg positions() const { return Tensor(); }

  template <class F> void each_attention(const F& f) { f(scale, stack); }
  template <class V> void visit(V&& v) {
    const std::string name = "." + std::to_string(scale);
    v("down" + name, down, "stack" + name, stack);
  }

 private:
  static Tensor no_cells(const Tensor& e_bcd) { return zeros({e_bcd.shape()[0], 0, e_bcd.shape()[2]}, e_bcd.dtype(), e_bcd.device()); }
};

struct CoarseModel : Shell<CoarseBody> {
  Tensor logits(const Batch& batch) const { return output.logits(hidden(batch), tok); }  // after every complete cell, [b m v]
  // The bag_loss of the cells. Targets only mark the end of each text, with -1.
  Tensor loss(const Batch& batch) const { return bag_loss(hidden(batch), output, tok, batch, body.scale); }

  int64_t counted(const Batch& batch) const {  // tokens in every cell except the first
    const int64_t rows = batch.ids_bc.shape()[0], scale = body.scale;
    const Tensor lengths_b = text_lengths_of(batch), host_b = lengths_b ? to(lengths_b, Device::cpu) : Tensor();
    int64_t tokens = 0;
    for (int64_t b = 0; b < rows; ++b)
      tokens += std::max<int64_t>(0, (host_b ? host_b.data<int64_t>()[b] : batch.ids_bc.shape()[1]) / scale - 1) * scale;
    return tokens;
  }

  Output output;

  CoarseModel(const ModelKeys& c, const CoarseConfig& config)
      : Shell(c.vocab, c.embedding, shape_of(c), CoarseBody(c, config)), output(c.vocab, c.output, shape_of(c)) {}

  // Decoding: returns the logits after the last complete cell. Error: no cell is complete.
  Tensor advance(const Tensor& ids_bc, State& state) const {
    read(ids_bc, state);
    if (!state.body.last_bmd) fail("model: no cell of {} tokens is complete after {} tokens", {body.scale, state.position});
    return output.last_logits(state.body.last_bmd, tok);
  }

  template <class V> void visit(V&& v) {
    v("tok", tok);
    body.visit(v);
    v("head", output.head);
  }
};

struct Coarse {
  static constexpr FamilyTraits kTraits{.name = "coarse", .objective = Objective::next_cell, .reads_layers = true, .reads_down = true};
  using Config = CoarseConfig;

  template <class Made> static void build(const ModelKeys& c, const Config& config, const Made& made) { made(CoarseModel(c, config)); }
  static void warn(const ModelKeys& c, const Config& config, std::vector<std::string>& lines) {
    warn_of_cells(c, "scale", config.scale, "the model predicts nothing and learns nothing", lines);
  }
};

inline void visit_fields(CoarseConfig& c, const Fields& field) { field("scale", c.scale, "tokens per cell").in(1, Visibility::kMaxTokens); }

}  // namespace ricci
