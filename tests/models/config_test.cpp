// Model configs: every rule by its message, what presets set, what follows from other keys.
#include "models/config.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <set>
#include <type_traits>

#include "tests/data/files.h"

using namespace ricci;
using test_data::error_of;

namespace {

// What check says of the default config with a vocabulary, after a change.
std::string complaint(const std::function<void(ModelConfig&)>& change) {
  ModelConfig config;
  config.vocab = 65;
  change(config);
  return error_of([&] { check(config); });
}

void retina(ModelConfig& c) { c.family = "retina", c.scales = {1, 4, 16}, c.heads = 4; }
void topdown(ModelConfig& c) { c.family = "topdown", c.scales = {1, 4, 16}, c.layers = {3, 2, 1}; }
void bottomup(ModelConfig& c) { c.family = "bottomup", c.scales = {1, 4, 16}, c.layers = {3, 2, 1}; }

}  // namespace

TEST_CASE("model config: the defaults are a model, once the vocabulary is known") {
  CHECK(complaint([](ModelConfig&) {}) == "no error");
  CHECK(complaint([](ModelConfig& c) { c.vocab = 0; }) == "model.vocab: 0, expected 1 or more");
}

TEST_CASE("model config: the list of keys has no key twice, a description for each, and the defaults allowed") {
  ModelConfig config;
  std::set<std::string> keys;
  visit_fields(config, [&](const char* key, auto& member, const char* description,
                           std::initializer_list<const char*> allowed = {}) {
    CAPTURE(key);
    CHECK(keys.insert(key).second);
    CHECK(std::string(description).size() > 10);
    if constexpr (std::is_same_v<decltype(member), std::string&>) {
      CHECK(allowed.size() >= 2);
      CHECK(std::set<std::string>(allowed.begin(), allowed.end()).count(member) == 1);
    }
  });
  for (const char* key :
       {"family",   "preset",      "mixer",       "vocab",      "ctx",        "d",          "heads",
        "layers",   "ff",          "dropout",     "bias",       "window",     "causal",     "share_heads",
        "coef_act", "levels",      "drop_level0", "mixer_bias", "value_proj", "pool",       "scales",
        "down",     "conv_kernel", "shift",       "chain",      "windows",    "cell_rule",  "head_groups",
        "tie",      "scale",       "classes",     "loss_from",  "norm",       "activation", "positions"})
    CHECK_MESSAGE(keys.count(key) == 1, key);
}

TEST_CASE("model config: sizes") {
  CHECK(complaint([](ModelConfig& c) { c.d = 64, c.heads = 3; }) == "model.heads: 3 does not divide d = 64");
  CHECK(complaint([](ModelConfig& c) { c.d = 0; }) == "model.d: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.d = int64_t{1} << 40; }) ==
        "model.d: 1099511627776, expected 2147483647 or less");
  CHECK(complaint([](ModelConfig& c) { c.heads = 0; }) == "model.heads: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.ctx = -1; }) == "model.ctx: -1, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.layers = {0}; }) == "model.layers: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.layers = {1'000'000}; }) == "model.layers: 1000000, expected 100000 or less");
  CHECK(complaint([](ModelConfig& c) { c.ff = 0; }) == "model.ff: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.window = 0; }) == "model.window: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.window = 1; }) == "no error");
  CHECK(complaint([](ModelConfig& c) { c.levels = -1; }) == "model.levels: -1, expected 0 or more");
  CHECK(complaint([](ModelConfig& c) { c.levels = 63; }) == "model.levels: 63, expected 62 or less");
  CHECK(complaint([](ModelConfig& c) { c.classes = 1; }) == "model.classes: 1, expected 2 or more");
  CHECK(complaint([](ModelConfig& c) { c.conv_kernel = 0; }) == "model.conv_kernel: 0, expected 1 or more");
}

TEST_CASE("model config: probabilities") {
  for (const double p : {1.0, -0.1, 2.5}) {
    const std::string error = complaint([&](ModelConfig& c) { c.dropout = p; });
    CHECK(error == format_message("model.dropout: {}, expected 0 or more and less than 1", {p}));
  }
  CHECK(complaint([](ModelConfig& c) { c.dropout = std::nan(""); }) ==
        "model.dropout: nan, expected 0 or more and less than 1");
  CHECK(complaint([](ModelConfig& c) { c.dropout = 0.999; }) == "no error");
}

TEST_CASE("model config: names") {
  CHECK(complaint([](ModelConfig& c) { c.family = "decodr"; }) ==
        "model.family: unknown 'decodr', expected one of decoder, topdown, bottomup, retina, coarse, classifier");
  CHECK(complaint([](ModelConfig& c) { c.preset = "bert"; }) ==
        "model.preset: unknown 'bert', expected one of gpt, msa");
  CHECK(complaint([](ModelConfig& c) { c.mixer = ""; }) ==
        "model.mixer: unknown '', expected one of sdp, dispatcher, quad_full, quad, p_only, metric, metric_psd, "
        "avgpool, identity");
  CHECK(complaint([](ModelConfig& c) { c.activation = "silu"; }) ==
        "model.activation: unknown 'silu', expected one of gelu, gelu_tanh, relu");
  CHECK(complaint([](ModelConfig& c) { c.loss_from = "63"; }) ==
        "model.loss_from: unknown '63', expected one of 0, first_full");
  for (const char* mixer : {"dispatcher", "metric", "identity"})
    CHECK(complaint([&](ModelConfig& c) { c.mixer = mixer; }) == "no error");
}

TEST_CASE("model config: pooling is symmetric unless causal") {
  const auto pool = [](int64_t tokens, bool causal) {
    return complaint([=](ModelConfig& c) { c.mixer = "avgpool", c.pool = tokens, c.causal = causal; });
  };
  CHECK(pool(4, true) == "no error");
  CHECK(pool(3, false) == "no error");
  CHECK(pool(4, false) == "model.pool: 4, expected an odd number when causal is false");
}

TEST_CASE("model config: layers fit the family") {
  CHECK(complaint([](ModelConfig& c) {
          c.layers = {2, 2};
        }) == "model.layers: 2 numbers, expected 1 for family decoder");
  CHECK(complaint([](ModelConfig& c) { c.layers = {}; }) == "model.layers: 0 numbers, expected 1 for family decoder");
  CHECK(complaint([](ModelConfig& c) { topdown(c); }) == "no error");
  CHECK(complaint([](ModelConfig& c) { topdown(c), c.layers = {6}; }) ==
        "model.layers: 1 numbers, expected 3 for family topdown, one per scale");
  CHECK(complaint([](ModelConfig& c) {
          retina(c), c.layers = {1, 2, 3};
        }) == "model.layers: 3 numbers, expected 1 for family retina");
}

TEST_CASE("model config: scales") {
  CHECK(complaint([](ModelConfig& c) { c.scales = {}; }) == "model.scales: the first is missing, expected 1");
  CHECK(complaint([](ModelConfig& c) { c.scales = {4, 16}; }) == "model.scales: the first is 4, expected 1");
  CHECK(complaint([](ModelConfig& c) {
          c.scales = {1, 4, 4};
        }) == "model.scales: 4 after 4, expected ascending numbers");
  CHECK(complaint([](ModelConfig& c) { c.scales = {1, 4, 6}; }) == "model.scales: 4 does not divide 6");
  CHECK(complaint([](ModelConfig& c) { c.scales = {1, -4}; }) == "model.scales: -4, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { topdown(c), c.ctx = 15; }) == "model.scales: 16 exceeds ctx = 15");
  CHECK(complaint([](ModelConfig& c) { c.family = "bottomup", c.scales = {1}; }) ==
        "model.scales: bottomup needs at least two");
  CHECK(complaint([](ModelConfig& c) { c.family = "coarse", c.scale = 65; }) == "model.scale: 65 exceeds ctx = 64");
}

TEST_CASE("model config: windows and groups of heads") {
  CHECK(complaint([](ModelConfig& c) { retina(c), c.windows = {{0, 8}, {8, 32}, {32, 64}}; }) == "no error");
  CHECK(complaint([](ModelConfig& c) {
          retina(c), c.windows = {{0, 8}, {8, 32}};
        }) == "model.windows: 2 windows for 3 scales");
  CHECK(complaint([](ModelConfig& c) { c.windows = {{8, 8}}; }) == "model.windows: 8:8, expected 0 <= lo < hi");
  CHECK(complaint([](ModelConfig& c) { c.windows = {{-1, 8}}; }) == "model.windows: -1:8, expected 0 <= lo < hi");
  CHECK(complaint([](ModelConfig& c) { retina(c), c.heads = 2; }) == "model.heads: 2 heads for 3 groups of scales");
  CHECK(complaint([](ModelConfig& c) { bottomup(c), c.heads = 2; }) == "no error");
  CHECK(complaint([](ModelConfig& c) { bottomup(c), c.heads = 1; }) == "model.heads: 1 heads for 2 groups of scales");
  CHECK(complaint([](ModelConfig& c) { retina(c), c.head_groups = {0, 0, 0, 1}; }) == "no error");
  CHECK(complaint([](ModelConfig& c) {
          retina(c), c.head_groups = {0, 1};
        }) == "model.head_groups: 2 numbers for 4 heads");
  CHECK(complaint([](ModelConfig& c) {
          retina(c), c.head_groups = {0, 0, 0, 3};
        }) == "model.head_groups: 3, expected 2 or less");
}

TEST_CASE("model config: presets") {
  ModelConfig gpt, msa;
  apply_preset(gpt);
  CHECK(gpt == ModelConfig());
  msa.preset = "msa";
  apply_preset(msa);
  CHECK(msa.norm == "post");
  CHECK(msa.activation == "relu");
  CHECK(msa.positions == "sinusoidal");
  CHECK(msa.scale_embedding);
  CHECK_FALSE(msa.tie);
  CHECK(msa.head_bias);
  msa.preset = "gpt";
  apply_preset(msa);
  CHECK(msa == gpt);
  msa.preset = "bert";
  CHECK(error_of([&] { apply_preset(msa); }) == "model.preset: unknown 'bert', expected one of gpt, msa");
}

TEST_CASE("model config: what follows from other keys") {
  ModelConfig config;
  config.d = 12;
  CHECK(config.feed_forward() == 48);
  CHECK(config.layers_of_decoder() == 4);
  // ceil(log2 ctx), by doubling
  for (const int64_t ctx : {1, 2, 3, 4, 5, 500, 512, 513}) {
    int64_t levels = 0;
    while ((int64_t{1} << levels) < ctx) ++levels;
    config.ctx = ctx;
    CHECK(config.dispatcher_levels() == levels);
  }
  resolve(config);
  CHECK(config.ff == 48);
  CHECK(config.levels == 10);
  config.d = 24, config.ctx = 8;
  resolve(config);
  CHECK(config.feed_forward() == 48);  // given by now
  CHECK(config.dispatcher_levels() == 10);
}
