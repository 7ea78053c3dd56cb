// family: retina. A decoder whose attention heads are divided among scales (models/mixers/retina.h); T is a stack of such blocks.
//   logits = T(embed(ids)) W_vocab^T
#pragma once
#include "models/families/language_model.h"
#include "models/mixers/retina.h"

namespace ricci {

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
    if (attention.window) fail("model.window: {}, but a retina has windows per scale: model.windows", {*attention.window});
    check_reads_cells(attention, keys.embedding.positions);
    if (count > heads) fail("model.scales: {} scales, but only {} heads to divide among them", {count, heads});
    check_windows(c.windows, count);
    if (!c.head_groups.empty() && c.head_groups.size() != heads)
      fail("model.head_groups: {} numbers for {} heads", {c.head_groups.size(), heads});
    for (int64_t group : c.head_groups)
      if (group < 0 || group >= static_cast<int64_t>(count)) fail("model.head_groups: {}, expected 0 .. {}", {group, count - 1});
  }
  // Error: keys of sdp that an attention of tokens to cells does not know.
  static void check_reads_cells(const SdpConfig& c, PositionKind positions) {
    const char* const layer = "but the attention of a retina has";
    if (c.qk_norm) fail("model.qk_norm: true, {} no such norms", {layer});
    if (c.kv_heads) fail("model.kv_heads: {}, {} one key head per head", {*c.kv_heads, layer});
    if (c.head_width) fail("model.head_width: {}, {} heads of d / heads columns", {*c.head_width, layer});
    if (c.qkv_bias) fail("model.qkv_bias: {}, {} separate maps, with biases by model.bias", {*c.qkv_bias ? "true" : "false", layer});
    if (positions == PositionKind::rope)
      fail("model.positions: rope, but in the attention of a retina queries are tokens and keys are cells");
  }
  static void resolve(const ModelKeys& keys, Config& c) {
    c.windows = c.every_window(keys.scales, keys.ctx);
    c.head_groups = c.every_head(keys.scales, keys.settings<Sdp>().heads);
  }
  static void warn(const ModelKeys& c, const Config&, std::vector<std::string>& lines) {
    for (const int64_t scale : c.scales.scales) warn_of_cells(c, "scales", scale, "the heads of this scale give zero", lines);
  }

 private:
  static void check_windows(const std::vector<Range>& windows, size_t scales) {
    if (windows.empty()) return;
    if (windows.size() != scales) fail("model.windows: {} windows for {} scales", {windows.size(), scales});
    for (size_t i = 0; i < scales; ++i) {
      const Range& w = windows[i];
      if (w.lo < 0 || w.hi <= w.lo) fail("model.windows: {}:{}, expected 0 or more, and the end after the begin", {w.lo, w.hi});
      if (w.hi > kLargestSize) fail("model.windows: {}, expected {} or less", {w.hi, kLargestSize});
      if (i > 0 && (w.lo < windows[i - 1].lo || w.hi < windows[i - 1].hi))
        fail("model.windows: {}:{} of a finer scale before {}:{}, expected nearer ones before farther ones",
            {windows[i - 1].lo, windows[i - 1].hi, w.lo, w.hi});
    }
  }
};

}  // namespace ricci
