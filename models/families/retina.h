// family: retina. A decoder whose attention heads are divided among scales (Subramanian et al. 2020, section 3.4): far tokens are heard as
// means over cells. Per scale a window says how far back its heads look. With x the input of the mixer:
//   q = Wq x,   of a head of scale s  k = Wk D(x, s),  v = Wv D(x, s)  (its rows),   D(x, 1) = x
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "core/range.h"
#include "models/families/decoder.h"
#include "models/scales/attention.h"
#include "models/scales/down.h"
#include "models/scales/scale_list.h"

namespace ricci {

constexpr auto choices(CellRule) { return std::array{"inside", "end"}; }

struct RetinaConfig {
  std::vector<Range> windows;
  CellRule cell_rule = CellRule::inside;
  std::vector<int64_t> head_groups;
  bool operator==(const RetinaConfig&) const = default;
};

inline void visit_fields(RetinaConfig& c, const Fields& field) {
  field("windows", c.windows, "per scale how many tokens back its heads look, from lo to hi, the token itself being 0; null: everything");
  field("cell_rule", c.cell_rule, "a window holds the cells that lie inside it, or those that end in it");
  field("head_groups", c.head_groups, "for each head the place of its scale, from 0; null: as many heads for each, in their order");
}

inline void check_windows(const std::vector<Range>& windows, size_t scales) {
  if (windows.empty()) return;
  if (windows.size() != scales) fail("model.windows: {} windows for {} scales", {windows.size(), scales});
  for (size_t i = 0; i < scales; ++i) {
    const Range& w = windows[i];
    if (w.lo < 0 || w.hi <= w.lo) fail("model.windows: {}:{}, expected 0 or more, and the end behind the begin", {w.lo, w.hi});
    if (w.hi > kLargestSize) fail("model.windows: {}, expected {} or less", {w.hi, kLargestSize});
    if (i > 0 && (w.lo < windows[i - 1].lo || w.hi < windows[i - 1].hi))
      fail("model.windows: {}:{} of a finer scale in front of {}:{}, expected nearer ones in front of farther ones",
          {windows[i - 1].lo, windows[i - 1].hi, w.lo, w.hi});
  }
}

inline void check(const RetinaConfig& c, const ScalesConfig& scales, const AttentionConfig& attention) {
  const size_t count = scales.scales.size();
  const auto heads = static_cast<size_t>(attention.heads);
  if (attention.window) fail("model.window: {}, but a retina has windows per scale: model.windows", {*attention.window});
  if (count > heads) fail("model.scales: {} scales, but only {} heads to divide among them", {count, heads});
  check_windows(c.windows, count);
  if (!c.head_groups.empty() && c.head_groups.size() != heads)
    fail("model.head_groups: {} numbers for {} heads", {c.head_groups.size(), heads});
  for (int64_t group : c.head_groups)
    if (group < 0 || group >= static_cast<int64_t>(count)) fail("model.head_groups: {}, expected 0 .. {}", {group, count - 1});
}

struct Retina {
  static constexpr const char* kName = "retina";
  struct Config {
    ScalesConfig scales;
    DownConfig down;
    RetinaConfig retina;
    AttentionConfig attention;
  };
  struct Cache {
    std::vector<Downsample::State> down;  // per scale
    ScaleAttention::Cache attention;
  };

  ScaleAttention attention;
  std::vector<int64_t> scales;
  std::vector<Downsample> down;  // per scale; the first one, of tokens, is not read

  Retina(const MixerShape& place, const Config& c) : attention(place, groups_of(c), windows_of(c, place.ctx)), scales(c.scales.scales) {
    for (int64_t s : scales) down.emplace_back(s > 1 ? c.down : DownConfig(), s, place.d, place.init);
  }

  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const {
    std::vector<Tensor> cells_s;
    for (size_t i = 0; i < scales.size(); ++i)
      cells_s.push_back(!attention.reads(i) ? Tensor() : scales[i] > 1 ? down[i](x_bcd) : Tensor(x_bcd));
    return attention(x_bcd, cells_s, lengths_b);
  }

  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    return {std::vector<Downsample::State>(scales.size()), attention.make_cache(batch, dtype, device)};
  }
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    std::vector<Tensor> new_cells_s;
    for (size_t i = 0; i < scales.size(); ++i)
      new_cells_s.push_back(!attention.reads(i) ? Tensor() : scales[i] > 1 ? down[i].advance(x_bcd, cache.down[i]) : Tensor(x_bcd));
    return attention.advance(x_bcd, new_cells_s, cache.attention);
  }
  int64_t positions_at_once() const { return attention.positions_at_once(); }

  template <class V> void visit(V&& v) {
    attention.visit(v);
    for (size_t i = 0; i < scales.size(); ++i) v("down." + std::to_string(scales[i]), down[i]);
  }

 private:
  static std::vector<int64_t> groups_of(const Config& c) {
    return c.retina.head_groups.empty() ? divided_heads(c.attention.heads, static_cast<int64_t>(c.scales.scales.size()))
                                        : c.retina.head_groups;
  }
  static std::vector<Visibility> windows_of(const Config& c, int64_t ctx) {
    std::vector<Visibility> sees;
    for (size_t i = 0; i < c.scales.scales.size(); ++i) {
      const Range w = c.retina.windows.empty() ? Range{0, ctx} : c.retina.windows[i];
      sees.push_back(Visibility::cells(c.scales.scales[i], w.lo, w.hi, c.retina.cell_rule));
    }
    return sees;
  }
};

// The keys are checked with the config of the model.
inline void check(const Retina::Config& c, const MixerShape&) { check(c.retina, c.scales, c.attention); }

static_assert(Mixer<Retina>);

}  // namespace ricci
