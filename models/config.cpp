// What a config may hold.
#include "models/config.h"

#include <bit>
#include <initializer_list>

#include "core/error.h"

namespace ricci {
namespace {

constexpr int64_t kMax = INT32_MAX;       // products of two sizes fit into 64 bits
constexpr int64_t kMostLayers = 100'000;  // each is made before the first number is asked for

void in_range(const char* key, int64_t value, int64_t lowest, int64_t highest = kMax) {
  if (value < lowest) fail("model.{}: {}, expected {} or more", {key, value, lowest});
  if (value > highest) fail("model.{}: {}, expected {} or less", {key, value, highest});
}

// Names out of a list: every key with allowed values.
struct NameCheck {
  template <class T> void operator()(const char*, const T&, const char*) const {}
  void operator()(const char* key, const std::string& name, const char*,
                  std::initializer_list<const char*> allowed) const {
    std::string list;
    for (const char* each : allowed) {
      if (name == each) return;
      list += std::string(list.empty() ? "" : ", ") + each;
    }
    fail("model.{}: unknown '{}', expected one of {}", {key, name, list});
  }
};

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
  for (const char* each : names)
    if (name == each) return true;
  return false;
}

void check_sizes(const ModelConfig& c) {
  in_range("vocab", c.vocab, 1);
  in_range("ctx", c.ctx, 1);
  in_range("d", c.d, 1);
  in_range("heads", c.heads, 1);
  if (c.d % c.heads != 0) fail("model.heads: {} does not divide d = {}", {c.heads, c.d});
  for (int64_t layers : c.layers) in_range("layers", layers, 1, kMostLayers);
  in_range("ff", c.feed_forward(), 1, 4 * kMax);
  if (!(c.dropout >= 0 && c.dropout < 1)) fail("model.dropout: {}, expected 0 or more and less than 1", {c.dropout});
  if (c.window) in_range("window", *c.window, 1);
  if (c.levels) in_range("levels", *c.levels, 0, 62);
  in_range("pool", c.pool, 1);
  if (c.mixer == "avgpool" && !c.causal && c.pool % 2 == 0)
    fail("model.pool: {}, expected an odd number when causal is false", {c.pool});
  in_range("conv_kernel", c.conv_kernel, 1);
  in_range("scale", c.scale, 1);
  in_range("classes", c.classes, 2);
}

void check_scales(const ModelConfig& c) {
  const std::vector<int64_t>& s = c.scales;
  if (s.empty() || s[0] != 1)
    fail("model.scales: the first is {}, expected 1", {s.empty() ? "missing" : std::to_string(s[0])});
  for (size_t i = 1; i < s.size(); ++i) {
    in_range("scales", s[i], 1);
    if (s[i] <= s[i - 1]) fail("model.scales: {} after {}, expected ascending numbers", {s[i], s[i - 1]});
    if (s[i] % s[i - 1] != 0) fail("model.scales: {} does not divide {}", {s[i - 1], s[i]});
  }
  if (one_of(c.family, {"topdown", "bottomup", "retina"}) && s.back() > c.ctx)
    fail("model.scales: {} exceeds ctx = {}", {s.back(), c.ctx});
  if (c.family == "bottomup" && s.size() < 2) fail("model.scales: bottomup needs at least two");
  if (c.family == "coarse" && c.scale > c.ctx) fail("model.scale: {} exceeds ctx = {}", {c.scale, c.ctx});
}

void check_layers(const ModelConfig& c) {
  const bool per_scale = one_of(c.family, {"topdown", "bottomup"});
  const size_t expected = per_scale ? c.scales.size() : 1;
  if (c.layers.size() != expected)
    fail("model.layers: {} numbers, expected {} for family {}{}",
         {c.layers.size(), expected, c.family, per_scale ? ", one per scale" : ""});
}

void check_windows(const ModelConfig& c) {
  for (const Window& w : c.windows)
    if (w.lo < 0 || w.hi <= w.lo) fail("model.windows: {}:{}, expected 0 <= lo < hi", {w.lo, w.hi});
  if (c.family == "retina" && !c.windows.empty() && c.windows.size() != c.scales.size())
    fail("model.windows: {} windows for {} scales", {c.windows.size(), c.scales.size()});
}

void check_head_groups(const ModelConfig& c) {
  const bool retina = c.family == "retina";
  if (!retina && c.family != "bottomup") return;
  const auto groups = static_cast<int64_t>(c.scales.size()) - (retina ? 0 : 1);  // bottomup: the coarse scales
  if (c.head_groups.empty()) {
    if (c.heads < groups) fail("model.heads: {} heads for {} groups of scales", {c.heads, groups});
    return;
  }
  if (static_cast<int64_t>(c.head_groups.size()) != c.heads)
    fail("model.head_groups: {} numbers for {} heads", {c.head_groups.size(), c.heads});
  for (int64_t group : c.head_groups) in_range("head_groups", group, 0, static_cast<int64_t>(c.scales.size()) - 1);
}

}  // namespace

int64_t ModelConfig::dispatcher_levels() const {
  return levels.value_or(std::bit_width(static_cast<uint64_t>(ctx) - 1));
}

void apply_preset(ModelConfig& c) {
  const bool msa = c.preset == "msa";
  if (!msa && c.preset != "gpt") fail("model.preset: unknown '{}', expected one of gpt, msa", {c.preset});
  c.norm = msa ? "post" : "pre";
  c.activation = msa ? "relu" : "gelu";
  c.positions = msa ? "sinusoidal" : "learned";
  c.scale_embedding = msa;
  c.tie = !msa;
  c.head_bias = msa;
}

void check(const ModelConfig& config) {
  ModelConfig named = config;
  visit_fields(named, NameCheck{});
  check_sizes(config);
  check_scales(config);
  check_layers(config);
  check_windows(config);
  check_head_groups(config);
}

void resolve(ModelConfig& config) {
  config.ff = config.feed_forward();
  config.levels = config.dispatcher_levels();
}

}  // namespace ricci
