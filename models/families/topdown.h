// family: topdown. A language model from coarse to fine (Subramanian et al. 2020, section 3.2). e are the token embeddings, s_1 = 1 < ...
// < s_n the scales. D turns each cell of s tokens into one vector, T is a stack of blocks over the cells, and U turns each coarse cell
// into r = s_i+1 / s_i rows, row q with the matrix W_q:
//   h^s_n = T_s_n(D(e, s_n)),   h^s_i = T_s_i(combine([D(e, s_i) ; shift(U(h^s_i+1))])),   logits = h^1 W_vocab^T
// With the scales 1 and 4, eight tokens have two cells. Below each token is the row of U that it uses, as cell.q (- means zeros):
//   token            0    1    2    3    4    5    6    7
//   cell             |------- 0 -------| |------- 1 -------|
//   shift: tight     -    -    -   0.0  0.1  0.2  0.3  1.0     from the last token of the cell on: shift r - 1
//   shift: block     -    -    -    -   0.0  0.1  0.2  0.3     from the token after the cell on: shift r
// Token t predicts token t + 1. Token 3 can use cell 0. Token 2 must not: the cell contains token 3, the target. Row 1.0 depends on cell 0
// as well, through T.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/families/language_model.h"
#include "models/scales/resample.h"

namespace ricci {

enum class LossFrom : uint8_t {
  start,       // every position is scored
  first_full,  // scoring starts at the first position that depends on every scale
};

struct TopDownConfig {
  Shift shift = Shift::tight;
  LossFrom loss_from = LossFrom::start;
  std::vector<double> bag_weights;

  // A weight for each coarse scale, from fine to coarse.
  std::vector<double> bag_weights_of(const ScalesConfig& scales) const {
    const size_t coarse = scales.scales.size() - 1;
    if (bag_weights.size() > 1) return bag_weights;
    return std::vector<double>(coarse, bag_weights.empty() ? 0 : bag_weights[0]);
  }
};

struct TopDown {
  Tensor operator()(const Tensor& e_bcd, const Tensor& lengths_b) const { return each_scale(e_bcd, lengths_b)[0]; }
  // The output of each scale's blocks, from fine to coarse; empty for a scale without a complete cell.
  std::vector<Tensor> each_scale(const Tensor& e_bcd, const Tensor& lengths_b) const {
    std::vector<Tensor> h_s(scales.size());
    Tensor z_bmx;  // from the next coarser scale
    for (size_t i = scales.size(); i-- > 0;) {
      const Scale& scale = scales[i];
      const Tensor cells_bmd = scale.tokens > 1 ? scale.down(e_bcd) : e_bcd;
      if (!cells_bmd) continue;  // the sequence is shorter than a cell
      h_s[i] = through(scale.stack, combined(i, cells_bmd, z_bmx, shift_to(i)), lengths_b, scale.tokens);
      if (i > 0) z_bmx = scale.up(h_s[i]);
    }
    return h_s;
  }

  struct Scale {
    int64_t tokens;  // per cell
    Downsample down;
    Stack<Sdp> stack;
    Linear combine;         // with the next coarser scale; empty for the coarsest
    Upsample up;            // to the next finer scale; empty for the finest
    double bag_weight = 0;  // weight of bag_loss in the training loss
  };
  std::vector<Scale> scales;  // from fine to coarse
  TopDownConfig config;
  int64_t ctx;

  TopDown(const ModelKeys& keys, const TopDownConfig& c) : config(c), ctx(keys.ctx) {
    const InitialWeights init = shape_of(keys).init;
    const std::vector<int64_t>& list = keys.scales.scales;
    const std::vector<double> bag_weights = c.bag_weights_of(keys.scales);
    for (size_t i = 0; i < list.size(); ++i) {
      const int64_t s = list[i];
      scales.push_back({s, Downsample(s > 1 ? keys.down : DownConfig(), s, keys.d, init),
          Stack<Sdp>(stack_at(keys, s, keys.stack_layers.per_scale(keys.scales)[i])),
          s < list.back() ? Linear(2 * keys.d, keys.d, true, init.map(2 * keys.d)) : Linear(),
          s > 1 ? Upsample(s / list[i - 1], keys.d, init) : Upsample(), s > 1 ? bag_weights[i - 1] : 0});
    }
  }

  int64_t scored_from() const {
    if (config.loss_from == LossFrom::start) return 0;
    int64_t first = 0;  // the first cell of scale i that depends on all coarser scales
    for (size_t i = scales.size() - 1; i-- > 0;) first = first * scales[i + 1].up.ratio + shift_to(i);
    return first;
  }

  struct State {
    struct ScaleState {
      Downsample::State down{};
      Stack<Sdp>::State stack;
      CellMemory up{};  // the rows z of join_upsampled that the finer scale still needs
    };
    std::vector<ScaleState> scales;
  };
  State make_state(int64_t batch, Dtype dtype, Device device) const {
    State state;
    for (const Scale& scale : scales) state.scales.push_back({.stack = scale.stack.make_state(batch, dtype, device)});
    return state;
  }
  // A coarse scale runs only when tokens complete one of its cells; ScaleState::up keeps its output for the finer scale.
  Tensor advance(const Tensor& e_bcd, State& state) const {
    Tensor h_bmd;
    for (size_t i = scales.size(); i-- > 0;) {
      const Scale& scale = scales[i];
      State::ScaleState& state_s = state.scales[i];
      const Tensor cells_bmd = scale.tokens > 1 ? scale.down.advance(e_bcd, state_s.down) : e_bcd;
      if (!cells_bmd) continue;
      h_bmd = through(scale.stack, combined_with_past(i, cells_bmd, state), state_s.stack);
      if (i > 0) state_s.up.append(scale.up(h_bmd));
    }
    return h_bmd;
  }

  int64_t positions_at_once() const { return ctx; }
  Arg positions() const { return Tensor(); }

  template <class F> void each_attention(const F& f) {
    for (size_t i = 0; i < scales.size(); ++i) {
      f(scales[i].tokens, scales[i].stack);
      if (i + 1 < scales.size()) f(scales[i].tokens, Join{scales[i + 1].tokens, shift_to(i)});
    }
  }
  template <class V> void visit(V&& v) {
    for (Scale& scale : scales) {
      const std::string name = "." + std::to_string(scale.tokens);
      v("stack" + name, scale.stack, "down" + name, scale.down, "up" + name, scale.up, "combine" + name, scale.combine);
    }
  }

  static constexpr FamilyTraits kTraits{.name = "topdown", .reads_stacks = true, .reads_scales = true, .reads_down = true};
  using Config = TopDownConfig;

  template <class Made> static void build(const ModelKeys& keys, const Config& c, const Made& made) {
    made(LanguageModel(keys, TopDown(keys, c)));
  }
  static void check(const ModelKeys& keys, const Config& c) {
    const size_t coarse = keys.scales.scales.size() - 1;
    if (c.bag_weights.size() > 1 && c.bag_weights.size() != coarse)
      fail("model.bag_weights: has {} elements, expected one for each of {} coarse scales", {c.bag_weights.size(), coarse});
  }
  static void warn(const ModelKeys& c, const Config&, std::vector<std::string>& lines) { warn_of_stacks(c, lines); }

 private:
  int64_t shift_to(size_t i) const {  // in cells of scale i
    return i + 1 < scales.size() ? scales[i + 1].up.ratio - (config.shift == Shift::tight) : 0;
  }
  Tensor combined(size_t i, const Tensor& cells_bmd, const Tensor& z_bmx, int64_t shift) const {
    if (i + 1 == scales.size()) return cells_bmd;
    return scales[i].combine(scales[i + 1].up.join(cells_bmd, z_bmx, shift));
  }
  // The next cells of scale i, combined with their rows of the coarser scale.
  Tensor combined_with_past(size_t i, const Tensor& cells_bmd, State& state) const {
    if (i + 1 == scales.size()) return cells_bmd;
    const int64_t ratio = scales[i + 1].up.ratio, shift = shift_to(i), first = state.scales[i].stack.position;
    CellMemory& coarser = state.scales[i + 1].up;
    const Tensor x_bmd = combined(i, cells_bmd, coarser.rows_bmx, shift - first + coarser.first * ratio);
    coarser.drop_before(std::max<int64_t>(0, first + cells_bmd.shape()[1] - shift) / ratio);
    return x_bmd;
  }
};

constexpr auto choices(LossFrom) { return std::array{"0", "first_full"}; }

inline void visit_fields(TopDownConfig& c, const Fields& field) {
  field("shift", c.shift, "when a finer scale uses a coarse cell: as soon as it is complete (tight), or one finer cell later (block)");
  field("loss_from", c.loss_from, "the first scored position (first_full: the first position that uses every scale)");
  field("bag_weights", c.bag_weights,
      "weight of each coarse scale's bag-of-words loss in the training loss. The bag-of-words loss measures how well a cell predicts the "
      "tokens of the next cell, as a mean over the cells of a micro-batch. One number for all scales, or one for each (null: 0)")
      .at_least(0);
}

}  // namespace ricci
