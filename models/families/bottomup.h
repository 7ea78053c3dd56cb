// family: bottomup. A language model from fine to coarse (Subramanian et al. 2020, section 3.3): the stacks over the cells of the coarse
// scales run first. In an aggregation layer, tokens then attend to complete coarse cells (cheaper than attention to all tokens) and pass
// through their own stack. e are the token embeddings, s_2 < ... < s_n the coarse scales.
//   x^s_2 = D(e),   h^s_i = T_s_i(x^s_i),   x^s_i+1 = D(h^s_i)  (chain)  or  D(e)
//   z = e + drop(A(LN(e); h^s_2, ..., h^s_n)),   h^1 = T_1(z),   logits = h^1 W_vocab^T
#pragma once
#include <string>
#include <vector>

#include "models/families/language_model.h"
#include "models/scales/attention.h"

namespace ricci {

struct BottomUpConfig {
  bool chain = true;
};

// The aggregation layer: tokens attend to the complete cells of the coarse scales, each head to one scale. It has no feed-forward map.
// Queries are tokens and keys are cells, so kv_heads, head_width, qk_norm and rope affect only the stacks.
struct Aggregation {
  Tensor operator()(const Arg& e_bcd, const std::vector<Tensor>& h_s, const Tensor& lengths_b) const {
    return e_bcd + drop(attention(ln_q(e_bcd), h_s, lengths_b), attention.dropout);
  }

  LayerNorm ln_q;
  ScaleAttention attention;

  Aggregation(const MixerShape& shape, const NormConfig& norm, int64_t heads, const std::vector<int64_t>& coarse)
      : ln_q(shape.d, norm), attention(shape, divided_heads(heads, static_cast<int64_t>(coarse.size())), cells_of(coarse)) {}

  Tensor advance(const Tensor& e_bcd, const std::vector<Tensor>& new_h_s, ScaleAttention::Cache& cache) const {
    return e_bcd + attention.advance(ln_q(e_bcd), new_h_s, cache);
  }
  template <class V> void visit(V&& v) {
    v("ln_q", ln_q);
    attention.visit(v);
  }

 private:
  static std::vector<Visibility> cells_of(const std::vector<int64_t>& coarse) {
    std::vector<Visibility> sees;
    for (int64_t s : coarse) sees.push_back(Visibility::cells(s));
    return sees;
  }
};

struct BottomUp {
  Tensor operator()(const Tensor& e_bcd, const Tensor& lengths_b) const {
    const auto down = [&](size_t i, const Tensor& finer) { return coarse[i].down(finer); };
    const auto stack = [&](size_t i, const Tensor& x_bmd) { return through(coarse[i].stack, x_bmd, lengths_b, coarse[i].tokens); };
    return through(fine, agg(e_bcd, coarse_cells(e_bcd, down, stack), lengths_b), lengths_b, 1);
  }

  struct Scale {
    int64_t tokens;  // per cell
    Downsample down;
    Stack<Sdp> stack;
  };
  std::vector<Scale> coarse;  // from fine to coarse
  Stack<Sdp> fine;
  Aggregation agg;
  bool chain;
  int64_t ctx;

  BottomUp(const ModelKeys& keys, const BottomUpConfig& c)
      : fine(fine_config(keys)),
        agg(fine_config(keys).shape, keys.block.norms(), keys.settings<Sdp>().heads,
            {keys.scales.scales.begin() + 1, keys.scales.scales.end()}),
        chain(c.chain),
        ctx(keys.ctx) {
    const std::vector<int64_t>& list = keys.scales.scales;
    for (size_t i = 1; i < list.size(); ++i) {
      const int64_t s = list[i], cell = chain ? s / list[i - 1] : s;
      coarse.push_back({s, Downsample(keys.down, cell, keys.d, shape_of(keys).init),
          Stack<Sdp>(stack_at(keys, s, keys.stack_layers.per_scale(keys.scales)[i]))});
    }
  }

  struct State {
    struct ScaleState {
      Downsample::State down{};
      Stack<Sdp>::State stack;
    };
    std::vector<ScaleState> coarse;
    ScaleAttention::Cache agg;
    Stack<Sdp>::State fine;
  };
  State make_state(int64_t batch, Dtype dtype, Device device) const {
    State state{{}, agg.attention.make_cache(batch, dtype, device), fine.make_state(batch, dtype, device)};
    for (const Scale& scale : coarse) state.coarse.push_back({.stack = scale.stack.make_state(batch, dtype, device)});
    return state;
  }
  // A coarse scale runs only when tokens complete one of its cells; the aggregation layer and the finest scale run for every token.
  Tensor advance(const Tensor& e_bcd, State& state) const {
    const auto down = [&](size_t i, const Tensor& finer) { return coarse[i].down.advance(finer, state.coarse[i].down); };
    const auto stack = [&](size_t i, const Tensor& x_bmd) { return through(coarse[i].stack, x_bmd, state.coarse[i].stack); };
    return through(fine, agg.advance(e_bcd, coarse_cells(e_bcd, down, stack), state.agg), state.fine);
  }

  int64_t positions_at_once() const { return ctx; }
  Arg positions() const { return Tensor(); }

  template <class F> void each_attention(const F& f) {
    f(1, agg.attention);
    f(1, fine);
    for (Scale& scale : coarse) f(scale.tokens, scale.stack);
  }
  template <class V> void visit(V&& v) {
    for (Scale& scale : coarse) {
      const std::string name = "." + std::to_string(scale.tokens);
      v("stack" + name, scale.stack, "down" + name, scale.down);
    }
    v("agg", agg, "stack.1", fine);
  }

  static constexpr FamilyTraits kTraits{.name = "bottomup", .reads_stacks = true, .reads_scales = true, .reads_down = true};
  using Config = BottomUpConfig;

  template <class Made> static void build(const ModelKeys& keys, const Config& c, const Made& made) {
    made(LanguageModel(keys, BottomUp(keys, c)));
  }
  static void check(const ModelKeys& keys, const Config&) {
    const int64_t coarse_scales = std::ssize(keys.scales.scales) - 1, heads = keys.settings<Sdp>().heads;
    if (keys.d % heads)
      fail("model.heads: {} does not divide d = {}, but the aggregation layer has heads of d / heads columns", {heads, keys.d});
    if (coarse_scales < 1) fail("model.scales: contains only scale 1, but the aggregation layer needs a coarser scale");
    if (coarse_scales > heads) fail("model.scales: has {} coarse scales, expected at most heads = {}", {coarse_scales, heads});
  }
  static void warn(const ModelKeys& c, const Config&, std::vector<std::string>& lines) { warn_of_stacks(c, lines); }

 private:
  // Returns stack(i, down(i, finer cells)) for every coarse scale i; empty for a scale without a complete cell.
  template <class Down, class Run> std::vector<Tensor> coarse_cells(const Tensor& e_bcd, const Down& down, const Run& stack) const {
    std::vector<Tensor> h_s;
    for (size_t i = 0; i < coarse.size(); ++i) {
      const Tensor& finer = chain && i > 0 ? h_s.back() : e_bcd;
      const Tensor x_bmd = finer ? down(i, finer) : Tensor();  // empty if the sequence is shorter than a cell
      h_s.push_back(x_bmd ? stack(i, x_bmd) : Tensor());
    }
    return h_s;
  }
  static StackConfig<Sdp> fine_config(const ModelKeys& c) { return stack_at(c, 1, c.stack_layers.per_scale(c.scales)[0]); }
};

inline void visit_fields(BottomUpConfig& c, const Fields& field) {
  field("chain", c.chain, "a coarse scale's input is the output of the next finer scale (false: the token embeddings)");
}

}  // namespace ricci
