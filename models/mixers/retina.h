// The attention of the family retina (Subramanian et al. 2020, section 3.4): heads are divided among scales, far tokens are read as
// means over cells. Per scale a window limits how far back its heads look. With x the input of the mixer:
//   q = Wq x,   of a head of scale s  k = Wk D(x, s),  v = Wv D(x, s)  (its rows),   D(x, 1) = x
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "core/fields.h"
#include "models/mixers/attention.h"
#include "models/scales/attention.h"
#include "models/scales/resample.h"
#include "models/scales/scale_list.h"

namespace ricci {

struct RetinaConfig {
  std::vector<Range> windows;
  CellRule cell_rule = CellRule::inside;
  std::vector<int64_t> head_groups;

  // The window of each scale: everything if none are given.
  std::vector<Range> every_window(const ScalesConfig& s, int64_t ctx) const {
    return windows.empty() ? std::vector<Range>(s.scales.size(), {0, ctx}) : windows;
  }
  // The scale of each head: divided equally if none are given.
  std::vector<int64_t> every_head(const ScalesConfig& s, int64_t heads) const {
    return head_groups.empty() ? divided_heads(heads, std::ssize(s.scales)) : head_groups;
  }
};

// A mixer that no run file names: the family of its name is built around it.
struct RetinaAttention {
  struct Config {
    ScalesConfig scales;
    DownConfig down;
    RetinaConfig retina;
    AttentionConfig attention;
  };

  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const {
    return attention(x_bcd, each_scale(x_bcd, [&](size_t i) { return down[i](x_bcd); }), lengths_b);
  }

  ScaleAttention attention;
  std::vector<int64_t> scales;
  std::vector<Downsample> down;  // per scale; the first one, of tokens, is not read

  RetinaAttention(const MixerShape& shape, const Config& c)
      : attention(shape, c.retina.every_head(c.scales, c.attention.heads), windows_of(c, shape.ctx)), scales(c.scales.scales) {
    for (int64_t s : scales) down.emplace_back(s > 1 ? c.down : DownConfig(), s, shape.d, shape.init);
  }

  struct Cache {
    std::vector<Downsample::State> down;  // per scale
    ScaleAttention::Cache attention;
  };
  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    return {std::vector<Downsample::State>(scales.size()), attention.make_cache(batch, dtype, device)};
  }
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    const auto new_cells_s = each_scale(x_bcd, [&](size_t i) { return down[i].advance(x_bcd, cache.down[i]); });
    return attention.advance(x_bcd, new_cells_s, cache.attention);
  }
  int64_t positions_at_once() const { return attention.positions_at_once(); }

  static constexpr const char* kName = "retina";
  template <class F> void each_visibility(const F& f) const { attention.each_visibility(f); }
  Forms forms() const { return attention.forms(); }
  template <class V> void visit(V&& v) {
    attention.visit(v);
    for (size_t i = 0; i < scales.size(); ++i) v("down." + std::to_string(scales[i]), down[i]);
  }

 private:
  // cells(i) of every scale that heads read: at the scale of tokens x itself.
  template <class Cells> std::vector<Tensor> each_scale(const Arg& x_bcd, const Cells& cells) const {
    std::vector<Tensor> all(scales.size());
    for (size_t i = 0; i < scales.size(); ++i)
      if (attention.reads(i)) all[i] = scales[i] > 1 ? cells(i) : Tensor(x_bcd);
    return all;
  }
  static std::vector<Visibility> windows_of(const Config& c, int64_t ctx) {
    std::vector<Visibility> sees;
    const std::vector<Range> windows = c.retina.every_window(c.scales, ctx);
    for (size_t i = 0; i < windows.size(); ++i)
      sees.push_back(Visibility::cells(c.scales.scales[i], windows[i].lo, windows[i].hi, c.retina.cell_rule));
    return sees;
  }
};

constexpr auto choices(CellRule) { return std::array{"inside", "end"}; }

inline void visit_fields(RetinaConfig& c, const Fields& field) {
  field(
      "windows", c.windows, "for each scale, how many tokens back its heads look, from lo to hi; 0 is the token itself; null: all tokens");
  field("cell_rule", c.cell_rule, "a window holds the cells that are inside it, or all that end in it");
  field("head_groups", c.head_groups,
      "for each head, the index of its scale, from 0; null: the scales share the heads equally, in their order");
}

static_assert(Mixer<RetinaAttention>);

}  // namespace ricci
