// family: retina (Subramanian et al. 2020, section 3.4). A decoder with attention heads divided among scales: the heads attend to near
// tokens individually and to far tokens through cheaper cells. A window per scale limits how far its heads attend. T is a stack of such
// blocks, and x is the input of a block's attention.
//   q = Wq x,   of a head of scale s  k = Wk D(x, s),  v = Wv D(x, s)  (the head's rows),   D(x, 1) = x;   logits = T(embed(ids)) W_vocab^T
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "models/families/language_model.h"
#include "models/scales/attention.h"

namespace ricci {

struct RetinaConfig {
  std::vector<Range> windows;
  CellRule cell_rule = CellRule::inside;
  std::vector<int64_t> head_groups;

  // The window of each scale; by default it contains all tokens.
  std::vector<Range> every_window(const ScalesConfig& s, int64_t ctx) const {
    return windows.empty() ? std::vector<Range>(s.scales.size(), {0, ctx}) : windows;
  }
  // The scale of each head; by default, the heads are divided equally among the scales.
  std::vector<int64_t> every_head(const ScalesConfig& s, int64_t heads) const {
    return head_groups.empty() ? divided_heads(heads, std::ssize(s.scales)) : head_groups;
  }
};

// The mixer of a retina. Run files do not name it.
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
  std::vector<Downsample> down;  // one per scale; the first, for tokens, is unused

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
  // Returns cells(i) for every scale that has heads, and x itself for the token scale.
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
  field("windows", c.windows, "for each scale, the distances lo:hi in tokens that its heads attend to (0 is the token itself; null: all)");
  field("cell_rule", c.cell_rule, "a window contains only cells fully inside it (inside), or all cells that end in it (end)");
  field("head_groups", c.head_groups,
      "for each head, the index of its scale, from 0 (null: heads divided equally, in the order of the scales)");
}

static_assert(Mixer<RetinaAttention>);

struct Retina {
  static constexpr FamilyTraits kTraits{.name = "retina", .reads_layers = true, .reads_scales = true, .reads_down = true};
  using Config = RetinaConfig;

  template <class Made> static void build(const ModelKeys& c, const Config& config, const Made& made) {
    const auto stack = stack_of<RetinaAttention>(c, {c.scales, c.down, config, c.settings<Sdp>()});
    made(LanguageModel(c, Stack<RetinaAttention>(stack)));
  }

  static void check(const ModelKeys& keys, const Config& c) {
    const SdpConfig& attention = keys.settings<Sdp>();
    const size_t count = keys.scales.scales.size();
    const auto heads = static_cast<size_t>(attention.heads);
    if (attention.window) fail("model.window: {}, but a retina has one window per scale; set model.windows", {*attention.window});
    check_reads_cells(attention, keys.embedding.positions);
    if (count > heads) fail("model.scales: has {} scales, expected at most heads = {}", {count, heads});
    check_windows(c.windows, count);
    if (!c.head_groups.empty() && c.head_groups.size() != heads)
      fail("model.head_groups: has {} elements, expected one for each of {} heads", {c.head_groups.size(), heads});
    for (int64_t group : c.head_groups)
      if (group < 0 || group >= static_cast<int64_t>(count)) fail("model.head_groups: {}, expected 0 .. {}", {group, count - 1});
  }
  // Error: a key of sdp is set that does not apply to attention from tokens to cells.
  static void check_reads_cells(const SdpConfig& c, PositionKind positions) {
    const char* const layer = "but the attention of a retina has";
    if (c.qk_norm) fail("model.qk_norm: true, {} no norms of queries and keys", {layer});
    if (c.kv_heads) fail("model.kv_heads: {}, {} one key head per head", {*c.kv_heads, layer});
    if (c.head_width) fail("model.head_width: {}, {} d / heads columns per head", {*c.head_width, layer});
    if (c.qkv_bias) fail("model.qkv_bias: {}, {} separate maps; model.bias sets their biases", {*c.qkv_bias ? "true" : "false", layer});
    if (positions == PositionKind::rope)
      fail("model.positions: rope, but in the attention of a retina queries are tokens and keys are cells");
  }
  static void resolve(const ModelKeys& keys, Config& c) {
    c.windows = c.every_window(keys.scales, keys.ctx);
    c.head_groups = c.every_head(keys.scales, keys.settings<Sdp>().heads);
  }
  static void warn(const ModelKeys& c, const Config&, std::vector<std::string>& lines) {
    for (const int64_t scale : c.scales.scales) warn_of_cells(c, "scales", scale, "the heads of this scale output zeros", lines);
  }

 private:
  static void check_windows(const std::vector<Range>& windows, size_t scales) {
    if (windows.empty()) return;
    if (windows.size() != scales) fail("model.windows: has {} elements, expected one for each of {} scales", {windows.size(), scales});
    for (size_t i = 0; i < scales; ++i) {
      const Range& w = windows[i];
      if (w.lo < 0 || w.hi <= w.lo) fail("model.windows: {}:{}, expected 0 <= start < end", {w.lo, w.hi});
      if (w.hi > kLargestSize) fail("model.windows: {}, expected {} or less", {w.hi, kLargestSize});
      if (i > 0 && (w.lo < windows[i - 1].lo || w.hi < windows[i - 1].hi))
        fail("model.windows: {}:{} of a finer scale precedes {}:{}, expected windows from near to far",
            {windows[i - 1].lo, windows[i - 1].hi, w.lo, w.hi});
    }
  }
};

}  // namespace ricci
