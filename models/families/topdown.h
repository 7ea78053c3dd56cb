// family: topdown. From coarse to fine (Subramanian et al. 2020, section 3.2): each scale has a stack of blocks over its cells, and hears
// what the next coarser scale made of the cells that are complete by then. e are the token embeddings, s_1 = 1 < ... < s_n the scales.
//   h^s_n = T_s_n(D(e, s_n)),   h^s_i = T_s_i(combine([D(e, s_i) ; shift(U(h^s_i+1))])),   logits = h^1 W_vocab^T
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "models/scales/down.h"
#include "models/scales/language_model.h"
#include "models/scales/scale_list.h"
#include "models/scales/up.h"

namespace ricci {

enum class LossFrom : uint8_t {
  start,       // every position counts
  first_full,  // from the first position on that hears every scale
};
constexpr auto choices(LossFrom) { return std::array{"0", "first_full"}; }

struct TopDownConfig {
  Shift shift = Shift::tight;
  LossFrom loss_from = LossFrom::start;
  std::vector<double> bag_weights;
  bool operator==(const TopDownConfig&) const = default;

  // Of each coarse scale, from fine to coarse.
  std::vector<double> bag_weights_of(const ScalesConfig& scales) const {
    const size_t coarse = scales.scales.size() - 1;
    return bag_weights.size() > 1 ? bag_weights : std::vector<double>(coarse, bag_weights.empty() ? 0 : bag_weights[0]);
  }
};

inline void visit_fields(TopDownConfig& c, const Fields& field) {
  field("shift", c.shift, "when a finer scale hears a coarse cell: tight, as soon as it is complete; block, one finer cell later");
  field("loss_from", c.loss_from, "the first position that the loss counts; first_full: the first that hears every scale");
  field("bag_weights", c.bag_weights,
      "for each coarse scale the weight, in the loss of training, of how well its cells say which tokens are in the next one, a mean over "
      "the cells of a micro-batch; one number: the same for each; null: 0")
      .not_negative();
}

inline void check(const TopDownConfig& c, const ScalesConfig& scales) {
  const size_t coarse = scales.scales.size() - 1;
  if (c.bag_weights.size() > 1 && c.bag_weights.size() != coarse)
    fail("model.bag_weights: {} numbers for {} coarse scales", {c.bag_weights.size(), coarse});
}

struct TopDown {
  struct Scale {
    int64_t tokens;  // of a cell
    Downsample down;
    Stack<Sdp> stack;
    Linear combine;         // with the next coarser scale; none of the coarsest
    Upsample up;            // to the next finer scale; none of the finest
    double bag_weight = 0;  // of bag_loss in the loss of training
  };
  std::vector<Scale> scales;  // from fine to coarse
  TopDownConfig config;

  TopDown(const StacksConfig& c, const ScalesConfig& list, const StackLayersConfig& layers, const DownConfig& down,
      const TopDownConfig& of_shift)
      : config(of_shift) {
    const int64_t d = c.place.d;
    const InitialWeights& init = c.place.init;
    const std::vector<double> bag_weights = of_shift.bag_weights_of(list);
    for (size_t i = 0; i < list.scales.size(); ++i) {
      const int64_t s = list.scales[i];
      scales.push_back({s, Downsample(s > 1 ? down : DownConfig(), s, d, init), Stack<Sdp>(c.at(s, layers.of(list)[i])),
          s < list.scales.back() ? Linear(2 * d, d, true, init.map(2 * d)) : Linear(),
          s > 1 ? Upsample(s / list.scales[i - 1], d, init) : Upsample(), s > 1 ? bag_weights[i - 1] : 0});
    }
  }

  // What the blocks of each scale give, from fine to coarse; empty where there is no cell.
  std::vector<Tensor> each_scale(const Tensor& e_bcd, const Tensor& lengths_b) const {
    std::vector<Tensor> h_s(scales.size());
    Tensor z_bmx;  // of the next coarser scale
    for (size_t i = scales.size(); i-- > 0;) {
      const Scale& scale = scales[i];
      const Tensor own_bmd = scale.tokens > 1 ? scale.down(e_bcd) : e_bcd;
      if (!own_bmd) continue;  // the sequence is shorter than a cell
      h_s[i] = through(scale.stack, combined(i, own_bmd, z_bmx, shift_to(i)), lengths_b, scale.tokens);
      if (i > 0) z_bmx = scale.up(h_s[i]);
    }
    return h_s;
  }

  std::vector<Representation> representations(const Tensor& e_bcd, const Tensor& lengths_b) const {
    std::vector<Representation> all;
    const std::vector<Tensor> h_s = each_scale(e_bcd, lengths_b);
    for (size_t i = 0; i < h_s.size(); ++i)
      if (h_s[i]) all.push_back({scales[i].tokens, h_s[i]});
    return all;
  }
  // Those of the blocks, and which coarser cell each cell hears, as the op that joins them has it.
  std::vector<Mask> masks(int64_t tokens) const {
    std::vector<Mask> all;
    for (size_t i = 0; i < scales.size(); ++i) {
      if (scales[i].tokens > tokens) continue;
      all.push_back(attention_mask(scales[i].stack.blocks[0].mixer.attending, scales[i].tokens, tokens));
      if (i + 1 < scales.size() && scales[i + 1].tokens <= tokens)
        all.push_back(joined_mask(scales[i].tokens, scales[i + 1].tokens, shift_to(i), tokens));
    }
    return all;
  }
  Tensor operator()(const Tensor& e_bcd, const Tensor& lengths_b) const { return each_scale(e_bcd, lengths_b)[0]; }

  int64_t scored_from() const {
    if (config.loss_from == LossFrom::start) return 0;
    int64_t first = 0;  // cell of scale i that hears all coarser ones
    for (size_t i = scales.size() - 1; i-- > 0;) first = first * scales[i + 1].up.ratio + shift_to(i);
    return first;
  }

  struct State {
    struct OfScale {
      Downsample::State down{};
      Stack<Sdp>::State stack;
      UpsampleState up{};
    };
    std::vector<OfScale> scales;
  };
  State make_state(int64_t batch, Dtype dtype, Device device) const {
    State state;
    for (const Scale& scale : scales) state.scales.push_back({.stack = scale.stack.make_state(batch, dtype, device)});
    return state;
  }
  // A coarse scale runs when tokens complete a cell of it; it is read by the finer ones from what State::up holds.
  Tensor advance(const Tensor& e_bcd, State& state) const {
    Tensor h_bmd;
    for (size_t i = scales.size(); i-- > 0;) {
      const Scale& scale = scales[i];
      State::OfScale& own = state.scales[i];
      const Tensor own_bmd = scale.tokens > 1 ? scale.down.advance(e_bcd, own.down) : e_bcd;
      if (!own_bmd) continue;
      h_bmd = through(scale.stack, heard(i, own_bmd, state), own.stack);
      if (i > 0) own.up.append(scale.up(h_bmd));
    }
    return h_bmd;
  }

  void recompute_blocks(bool on) {
    for (Scale& scale : scales) scale.stack.recomputes_blocks = on;
  }
  template <class V> void visit(V&& v) {
    for (Scale& scale : scales) {
      const std::string name = "." + std::to_string(scale.tokens);
      v("stack" + name, scale.stack), v("down" + name, scale.down), v("up" + name, scale.up), v("combine" + name, scale.combine);
    }
  }

 private:
  int64_t shift_to(size_t i) const {  // of what scale i hears, in its cells
    return i + 1 < scales.size() ? scales[i + 1].up.ratio - (config.shift == Shift::tight) : 0;
  }
  Tensor combined(size_t i, const Tensor& own_bmd, const Tensor& z_bmx, int64_t shift) const {
    if (i + 1 == scales.size()) return own_bmd;
    return scales[i].combine(scales[i + 1].up.beside(own_bmd, z_bmx, shift));
  }
  // The next cells of scale i beside what they hear.
  Tensor heard(size_t i, const Tensor& own_bmd, State& state) const {
    if (i + 1 == scales.size()) return own_bmd;
    const int64_t ratio = scales[i + 1].up.ratio, shift = shift_to(i), first = state.scales[i].stack.position;
    UpsampleState& coarser = state.scales[i + 1].up;
    const Tensor x_bmd = combined(i, own_bmd, coarser.z_bmx, shift - first + coarser.first_cell * ratio);
    coarser.forget(first + own_bmd.shape()[1], ratio, shift);
    return x_bmd;
  }
};

}  // namespace ricci
