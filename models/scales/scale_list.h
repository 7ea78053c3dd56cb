// The scales of a model, from fine to coarse: the tokens per cell of each scale and its number of blocks. Each scale divides the next, so a
// coarse cell never ends inside a finer one.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "core/fields.h"
#include "models/layers/mixer.h"
#include "models/layers/stack.h"
#include "ops/scales/cells.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

struct ScalesConfig {
  std::vector<int64_t> scales = {1, 4, 16, 64};
};

inline void visit_fields(ScalesConfig& c, const Fields& field) {
  field("scales", c.scales, "tokens per cell, fine to coarse; the first is 1, and each divides the next").in(1, Visibility::kMaxTokens);
}

inline void check(const ScalesConfig& c) {
  if (c.scales.empty() || c.scales[0] != 1)
    fail("model.scales: begins with {}, expected 1", {c.scales.empty() ? "nothing" : std::to_string(c.scales[0])});
  for (size_t i = 1; i < c.scales.size(); ++i) {
    const int64_t finer = c.scales[i - 1], scale = c.scales[i];
    if (scale <= finer) fail("model.scales: {} follows {}, expected increasing numbers", {scale, finer});
    if (scale % finer) fail("model.scales: {} does not divide {}", {finer, scale});
  }
}

// The number of blocks of each scale.
struct StackLayersConfig {
  std::vector<int64_t> layers = {4};
  std::vector<int64_t> per_scale(const ScalesConfig& scales) const {
    return layers.size() == 1 ? std::vector<int64_t>(scales.scales.size(), layers[0]) : layers;
  }
};

inline void visit_fields(StackLayersConfig& c, const Fields& field) {
  field("layers", c.layers, "number of blocks of each scale, in the order of the scales (one number: for all scales)").in(1, kMaxLayers);
}

inline void check(const StackLayersConfig& c, const ScalesConfig& scales) {
  const std::vector<int64_t> layers = c.per_scale(scales);
  if (layers.size() != scales.scales.size())
    fail("model.layers: has {} elements, expected one for each of {} scales", {layers.size(), scales.scales.size()});
}

// Decoding: a row of values [b m x] for each cell that later positions still need, from cell `first` on. Can be empty.
struct CellMemory {
  Tensor rows_bmx{};
  int64_t first = 0;

  void append(const Tensor& next_bmx) { rows_bmx = rows_bmx ? concatenate({rows_bmx, next_bmx}, 1) : next_bmx; }
  void drop_before(int64_t cell) {
    if (!rows_bmx || cell <= first) return;
    const int64_t count = rows_bmx.shape()[1], gone = std::min(count, cell - first);
    rows_bmx = gone < count ? slice(rows_bmx, 1, gone, count - gone) : Tensor();
    first += gone;
  }
};

// Passes the cells of a scale through its stack.
template <Mixer M> Tensor through(const Stack<M>& stack, const Arg& x_bmd, const Tensor& lengths_b, int64_t scale) {
  return stack(with_positions(x_bmd, stack.pos), lengths_b && scale > 1 ? whole_cells(lengths_b, scale) : lengths_b);
}

// Decoding: passes the next cells through the stack, at most positions_at_once() per call.
template <Mixer M> Tensor through(const Stack<M>& stack, const Tensor& x_bmd, typename Stack<M>::State& state) {
  const int64_t cells = x_bmd.shape()[1], at_once = stack.positions_at_once();
  std::vector<Arg> y;
  for (int64_t first = 0; first < cells; first += at_once) {
    const Tensor next_bmd = slice(x_bmd, 1, first, std::min(at_once, cells - first));
    y.push_back(stack.advance(with_positions(next_bmd, stack.pos, state.position), state));
  }
  return y.size() == 1 ? Tensor(y[0]) : concatenate(y, 1);
}

}  // namespace ricci
