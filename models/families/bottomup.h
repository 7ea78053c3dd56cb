// family: bottomup. From fine to coarse (Subramanian et al. 2020, section 3.3): stacks over the cells of the coarse scales, and before the
// blocks of the tokens an aggregation layer, in which tokens attend to the coarse cells that are complete. e are the token
// embeddings, s_2 < ... < s_n the coarse scales.
//   x^s_2 = D(e),   h^s_i = T_s_i(x^s_i),   x^s_i+1 = D(h^s_i)  (chain)  or  D(e)
//   z = e + drop(A(LN(e); h^s_2, ..., h^s_n)),   h^1 = T_1(z),   logits = h^1 W_vocab^T
#pragma once
#include <string>
#include <vector>

#include "models/scales/attention.h"
#include "models/scales/down.h"
#include "models/scales/language_model.h"
#include "models/scales/scale_list.h"

namespace ricci {

struct BottomUpConfig {
  bool chain = true;
  bool operator==(const BottomUpConfig&) const = default;
};

inline void visit_fields(BottomUpConfig& c, const Fields& field) {
  field("chain", c.chain, "a scale reads what the next finer one made of its cells; false: the token embeddings");
}

inline void check_bottom_up(const ScalesConfig& scales, const AttentionConfig& attention) {
  const auto coarse = static_cast<int64_t>(scales.scales.size()) - 1;
  if (coarse < 1) fail("model.scales: only 1, expected a coarser one for the aggregation layer");
  if (coarse > attention.heads) fail("model.scales: {} coarse ones, but only {} heads to divide among them", {coarse, attention.heads});
}

// Tokens attend to the complete cells of the coarse scales, each head to those of one scale. No feed-forward map.
struct Aggregation {
  LayerNorm ln_q;
  ScaleAttention attention;

  Aggregation(const MixerShape& place, bool norm_bias, int64_t heads, const std::vector<int64_t>& coarse)
      : ln_q(place.d, norm_bias), attention(place, divided_heads(heads, static_cast<int64_t>(coarse.size())), cells_of(coarse)) {}

  // z of the tokens.
  Tensor operator()(const Arg& e_bcd, const std::vector<Tensor>& h_s, const Tensor& lengths_b) const {
    return e_bcd + drop(attention(ln_q(e_bcd), h_s, lengths_b), attention.dropout);
  }
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
  struct Scale {
    int64_t tokens;  // of a cell
    Downsample down;
    Stack<Sdp> stack;
  };
  std::vector<Scale> coarse;  // from fine to coarse
  Stack<Sdp> fine;
  Aggregation agg;
  bool chain;

  BottomUp(const StacksConfig& c, const ScalesConfig& list, const StackLayersConfig& layers, const DownConfig& down,
      const BottomUpConfig& config)
      : fine(c.at(1, layers.of(list)[0])),
        agg(fine_place(c, layers.of(list)[0]), c.block.norm_bias, c.attention.heads, {list.scales.begin() + 1, list.scales.end()}),
        chain(config.chain) {
    for (size_t i = 1; i < list.scales.size(); ++i) {
      const int64_t s = list.scales[i], cell = chain ? s / list.scales[i - 1] : s;
      coarse.push_back({s, Downsample(down, cell, c.place.d, c.place.init), Stack<Sdp>(c.at(s, layers.of(list)[i]))});
    }
  }

  Tensor operator()(const Tensor& e_bcd, const Tensor& lengths_b) const {
    return through_fine(e_bcd, of_coarse(e_bcd, lengths_b), lengths_b);
  }

  std::vector<Representation> representations(const Tensor& e_bcd, const Tensor& lengths_b) const {
    const std::vector<Tensor> h_s = of_coarse(e_bcd, lengths_b);
    std::vector<Representation> all = {{1, through_fine(e_bcd, h_s, lengths_b)}};
    for (size_t i = 0; i < h_s.size(); ++i)
      if (h_s[i]) all.push_back({coarse[i].tokens, h_s[i]});
    return all;
  }
  // Those of the blocks, and of the aggregation layer.
  std::vector<Mask> masks(int64_t tokens) const {
    std::vector<Mask> all = agg.attention.masks("aggregation", tokens);
    all.push_back(attention_mask(fine.blocks[0].mixer.attending, 1, tokens));
    for (const Scale& scale : coarse)
      if (scale.tokens <= tokens) all.push_back(attention_mask(scale.stack.blocks[0].mixer.attending, scale.tokens, tokens));
    return all;
  }

  int64_t scored_from() const { return 0; }

  struct State {
    struct OfScale {
      Downsample::State down{};
      Stack<Sdp>::State stack;
    };
    std::vector<OfScale> coarse;
    ScaleAttention::Cache agg;
    Stack<Sdp>::State fine;
  };
  State make_state(int64_t batch, Dtype dtype, Device device) const {
    State state{{}, agg.attention.make_cache(batch, dtype, device), fine.make_state(batch, dtype, device)};
    for (const Scale& scale : coarse) state.coarse.push_back({.stack = scale.stack.make_state(batch, dtype, device)});
    return state;
  }
  // A coarse scale runs when tokens complete a cell of it, the aggregation layer and the finest scale at every token.
  Tensor advance(const Tensor& e_bcd, State& state) const {
    std::vector<Tensor> new_h_s;
    for (size_t i = 0; i < coarse.size(); ++i) {
      const Tensor& from = chain && i > 0 ? new_h_s.back() : e_bcd;
      const Tensor x_bmd = from ? coarse[i].down.advance(from, state.coarse[i].down) : Tensor();
      new_h_s.push_back(x_bmd ? through(coarse[i].stack, x_bmd, state.coarse[i].stack) : Tensor());
    }
    return through(fine, agg.advance(e_bcd, new_h_s, state.agg), state.fine);
  }

  void recompute_blocks(bool on) {
    fine.recomputes_blocks = on;
    for (Scale& scale : coarse) scale.stack.recomputes_blocks = on;
  }
  template <class V> void visit(V&& v) {
    for (Scale& scale : coarse) {
      const std::string name = "." + std::to_string(scale.tokens);
      v("stack" + name, scale.stack), v("down" + name, scale.down);
    }
    v("agg", agg), v("stack.1", fine);
  }

 private:
  // What the blocks of the coarse scales give; empty where there is no cell.
  std::vector<Tensor> of_coarse(const Tensor& e_bcd, const Tensor& lengths_b) const {
    std::vector<Tensor> h_s;
    for (const Scale& scale : coarse) {
      const Tensor& from = chain && !h_s.empty() ? h_s.back() : e_bcd;
      const Tensor x_bmd = from ? scale.down(from) : Tensor();  // empty: shorter than a cell
      h_s.push_back(x_bmd ? through(scale.stack, x_bmd, lengths_b, scale.tokens) : Tensor());
    }
    return h_s;
  }
  Tensor through_fine(const Tensor& e_bcd, const std::vector<Tensor>& h_s, const Tensor& lengths_b) const {
    return through(fine, agg(e_bcd, h_s, lengths_b), lengths_b, 1);
  }
  static MixerShape fine_place(const StacksConfig& c, int64_t layers) {
    MixerShape place = c.place;
    place.init.layers = layers;
    return place;
  }
};

}  // namespace ricci
