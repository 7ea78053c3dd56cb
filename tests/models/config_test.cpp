// Model configs: every rule by its message, presets, values that follow from other keys, published parameter counts.
#include "models/config.h"

#include <cmath>
#include <functional>
#include <set>
#include <type_traits>
#include <variant>

#include "core/memory/dry_run.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

// The message of check for the default config with a vocabulary, after a change.
std::string complaint(const std::function<void(ModelConfig&)>& change) {
  ModelConfig config;
  config.vocab = 65;
  change(config);
  return message_of([&] { check(config); });
}

std::string complaint(Family family, const std::function<void(ModelConfig&)>& change) {
  ModelConfig config = small_scales(family);
  change(config);
  return message_of([&] { check(config); });
}

// Both are members of one type.
bool same_value(const FieldValue& a, const FieldValue& b) {
  const auto equals_b = [&]<class Member>(const Member& member) {
    const Member& other = std::get<Member>(b);
    if constexpr (std::is_same_v<Member, ChoiceMember>) return *member.number == *other.number;
    else if constexpr (std::is_same_v<Member, ChoiceListMember>) return *member.numbers == *other.numbers;
    else return *member == *other;
  };
  return std::visit(equals_b, a);
}

int64_t parameters(MixerKind mixer, int64_t vocab, int64_t d, int64_t layers, int64_t ctx) {
  ModelConfig c;
  c.preset = Preset::msa, c.mixer = mixer;
  apply_preset(c);
  c.vocab = vocab, c.d = d, c.block.ff = d, c.layers = layers, c.ctx = ctx, c.settings<Sdp>().heads = 1;
  return Model(c).parameter_count();
}

struct Published {
  const char* name;
  int64_t vocab, d, layers, ff, heads, kv_heads, head_width, parameters;
  bool tied = true, qk_norm = false, qkv_bias = false;
};

int64_t parameters(const Published& of) {
  ModelConfig c;
  c.preset = Preset::llama;
  apply_preset(c);
  c.vocab = of.vocab, c.d = of.d, c.layers = of.layers, c.block.ff = of.ff, c.ctx = 131'072, c.output.tie = of.tied;
  SdpConfig& attention = c.settings<Sdp>();
  attention.heads = of.heads, attention.kv_heads = of.kv_heads, attention.head_width = of.head_width;
  attention.qk_norm = of.qk_norm, attention.qkv_bias = of.qkv_bias;
  const DryRun dry(Device::cpu);  // nothing is computed or allocated
  return Model(c).parameter_count();
}

}  // namespace

TEST_CASE("model config: the defaults are a model, once the vocabulary is known") {
  CHECK(complaint([](ModelConfig&) {}) == "no error");
  CHECK(complaint([](ModelConfig& c) { c.vocab = 0; }) == "model.vocab: 0, expected 1 or more");
}

TEST_CASE("model config: no key is read twice, and each has a description") {
  ModelConfig config;
  for (size_t mixer = 0; mixer < choices(MixerKind()).size(); ++mixer)
    for (size_t family = 0; family < choices(Family{}).size(); ++family) {
      config.mixer = static_cast<MixerKind>(mixer), config.family = static_cast<Family>(family);
      std::set<std::string> keys;
      for (const Field& field : fields_of(config)) {
        CAPTURE(field.key);
        CHECK(std::string(field.description).size() > 5);
        if (field.is_read) CHECK(keys.insert(field.key).second);
        if (!field.is_read) CHECK(!field.by.empty());
      }
      for (const char* key : {"family", "preset", "mixer", "vocab", "ctx", "d", "layers", "ff", "dropout", "bias", "norm_bias", "causal"})
        CHECK_MESSAGE(keys.count(key) == 1, key);
    }
}

TEST_CASE("model config: sizes") {
  CHECK(complaint([](ModelConfig& c) { c.d = 64, c.settings<Sdp>().heads = 3; }) == "model.heads: 3 does not divide d = 64");
  CHECK(complaint([](ModelConfig& c) { c.d = 0; }) == "model.d: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.d = int64_t{1} << 40; }) == "model.d: 1099511627776, expected 2147483647 or less");
  CHECK(complaint([](ModelConfig& c) { c.settings<Sdp>().heads = 0; }) == "model.heads: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.ctx = -1; }) == "model.ctx: -1, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.layers = 0; }) == "model.layers: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.layers = 1'000'000; }) == "model.layers: 1000000, expected 100000 or less");
  CHECK(complaint([](ModelConfig& c) { c.block.ff = 0; }) == "model.ff: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.block.norm_eps = 0; }) == "model.norm_eps: 0, expected more than 0");
  CHECK(complaint([](ModelConfig& c) { c.settings<Sdp>().window = 0; }) == "model.window: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.settings<Sdp>().window = 1; }) == "no error");
}

TEST_CASE("model config: probabilities") {
  for (const double p : {1.0, -0.1, std::nan("")})
    CHECK(complaint([&](ModelConfig& c) { c.block.dropout = p; }) ==
          format_message("model.dropout: {}, expected 0 or more and less than 1", {p}));
  CHECK(complaint([](ModelConfig& c) { c.block.dropout = 0.999; }) == "no error");
}

TEST_CASE("model config: presets, and values that follow from other keys") {
  ModelConfig defaults, gpt, llama, config;
  apply_preset(gpt);
  const std::vector<Field> expected = fields_of(defaults), fields = fields_of(gpt);
  REQUIRE(fields.size() == expected.size());
  for (size_t i = 0; i < fields.size(); ++i) CHECK_MESSAGE(same_value(fields[i].value, expected[i].value), fields[i].key);
  llama.preset = Preset::llama;
  apply_preset(llama);
  CHECK(llama.block.feed_forward(576) == 1536);
  CHECK(llama.block.feed_forward(25) == 128);
  config.d = 12;
  CHECK(config.block.feed_forward(12) == 48);
  CHECK(resolved(config).block.ff == 48);
  CHECK_FALSE(config.block.ff.has_value());
  config.d = 24;
  CHECK(resolved(config).block.ff == 96);
}

TEST_CASE("model config: impossible rotary positions and shared keys") {
  const auto with_rope = [](ModelConfig& c) { c.embedding.positions = PositionKind::rope; };
  CHECK(complaint([&](ModelConfig& c) { with_rope(c); }) == "no error");
  for (MixerKind mixer : {kind_of<Dispatcher>, kind_of<Quad>, kind_of<QuadFull>, kind_of<Metric>, kind_of<AveragePool>, kind_of<Identity>})
    CHECK(complaint([&](ModelConfig& c) { with_rope(c), c.mixer = mixer; }) ==
          "model.positions: rope, but mixer " + std::string(name_of(mixer)) + " does not rotate queries and keys; only sdp does");
  CHECK(complaint([&](ModelConfig& c) { with_rope(c), c.settings<Sdp>().head_width = 5; }) ==
        "model.rope_fraction: 1 of a head's 5 columns is 5 columns, expected an even number above 0");
  CHECK(complaint([&](ModelConfig& c) { with_rope(c), c.settings<Sdp>().head_width = 6, c.embedding.rope_fraction = 0.7; }) == "no error");
  CHECK(complaint([&](ModelConfig& c) { with_rope(c), c.embedding.rope.scaling = RopeScaling::llama3, c.embedding.rope.low = 4; }) ==
        "model.rope_low: 4, expected less than rope_high = 4");
  for (const double number : {0.0, -0.5, 1.5, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    CAPTURE(number);
    CHECK(complaint([&](ModelConfig& c) { with_rope(c), c.embedding.rope_fraction = number; }).starts_with("model.rope_fraction: "));
    if (number == 1.5) continue;
    CHECK(complaint([&](ModelConfig& c) { with_rope(c), c.embedding.rope.theta = number; }).starts_with("model.rope_theta: "));
    CHECK(complaint([&](ModelConfig& c) {
      with_rope(c), c.embedding.rope.scaling = RopeScaling::linear, c.embedding.rope.factor = number;
    }).starts_with("model.rope_factor: "));
  }
  CHECK(complaint([](ModelConfig& c) { c.settings<Sdp>().kv_heads = 3; }) == "model.kv_heads: 3 does not divide heads = 4");
  CHECK(complaint([](ModelConfig& c) { c.settings<Sdp>().kv_heads = 0; }) == "model.kv_heads: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.settings<Sdp>().head_width = 7, c.settings<Sdp>().heads = 3; }) == "no error");
}

TEST_CASE("multiple scales: their list") {
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>}) {
    const auto of = [&](std::vector<int64_t> scales) {
      return complaint(family, [&](ModelConfig& c) { c.scales.scales = std::move(scales), c.stack_layers.layers = {1}; });
    };
    CHECK(of({1, 2, 6}) == "no error");
    CHECK(of({1, 4, 6}) == "model.scales: 4 does not divide 6");
    CHECK(of({1, 4, 4}) == "model.scales: 4 follows 4, expected increasing numbers");
    CHECK(of({1, 16, 4}) == "model.scales: 4 follows 16, expected increasing numbers");
    CHECK(of({2, 4}) == "model.scales: begins with 2, expected 1");
    CHECK(of({}) == "model.scales: begins with nothing, expected 1");
    CHECK(of({1, int64_t{1} << 30}) == "model.scales: 1073741824, expected 16777216 or less");
  }
}

TEST_CASE("multiple scales: heads are divided among them") {
  const auto five = [](ModelConfig& c) { c.scales.scales = {1, 2, 4, 8, 16}, c.stack_layers.layers = {1}; };
  CHECK(complaint(family_of<Retina>, five) == "model.scales: has 5 scales, expected at most heads = 4");
  CHECK(complaint(family_of<BottomUp>, five) == "no error");
  CHECK(complaint(family_of<TopDown>, five) == "no error");
  CHECK(complaint(family_of<BottomUp>, [](ModelConfig& c) { c.settings<Sdp>().heads = 1; }) ==
        "model.scales: has 2 coarse scales, expected at most heads = 1");
  CHECK(complaint(family_of<BottomUp>, [](ModelConfig& c) { c.scales.scales = {1}, c.stack_layers.layers = {1}; }) ==
        "model.scales: contains only scale 1, but the aggregation layer needs a coarser scale");
  const auto normed = [](ModelConfig& c) { c.settings<Sdp>().qk_norm = true; };
  CHECK(complaint(family_of<Retina>, normed) == "model.qk_norm: true, but the attention of a retina has no norms of queries and keys");
  CHECK(complaint(family_of<TopDown>, normed) == "no error");
  CHECK(complaint(family_of<BottomUp>, normed) == "no error");
  CHECK(complaint(family_of<Retina>, [](ModelConfig& c) { c.d = 16, c.embedding.positions = PositionKind::rope; }) ==
        "model.positions: rope, but in the attention of a retina queries are tokens and keys are cells");
  for (Family family : {family_of<TopDown>, family_of<BottomUp>})
    CHECK(complaint(family,
              [](ModelConfig& c) {
                c = llama_of(c.family, true).config;
                c.d = 10;
              }) == (family == family_of<TopDown>
                            ? "no error"
                            : "model.heads: 4 does not divide d = 10, but the aggregation layer has heads of d / heads columns"));
  CHECK(divided_heads(12, 2) == std::vector<int64_t>{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1});
  CHECK(divided_heads(5, 3) == std::vector<int64_t>{0, 0, 1, 1, 2});
  CHECK(complaint(family_of<Retina>, [](ModelConfig& c) {
    c.settings<Retina>().head_groups = {0, 1};
  }) == "model.head_groups: has 2 elements, expected one for each of 4 heads");
  CHECK(complaint(family_of<Retina>, [](ModelConfig& c) {
    c.settings<Retina>().head_groups = {0, 1, 2, 3};
  }) == "model.head_groups: 3, expected 0 .. 2");
  CHECK(complaint(family_of<Retina>, [](ModelConfig& c) {
    c.settings<Retina>().head_groups = {0, 1, -1, 2};
  }) == "model.head_groups: -1, expected 0 .. 2");
}

TEST_CASE("multiple scales: windows") {
  const auto of = [](std::vector<Range> windows) {
    return complaint(family_of<Retina>, [&](ModelConfig& c) { c.settings<Retina>().windows = std::move(windows); });
  };
  CHECK(of({{0, 8}, {4, 16}, {8, 26}}) == "no error");
  CHECK(of({{0, 8}, {0, 8}, {0, 8}}) == "no error");
  CHECK(of({{0, 8}, {8, 26}}) == "model.windows: has 2 elements, expected one for each of 3 scales");
  CHECK(of({{0, 8}, {16, 8}, {16, 26}}) == "model.windows: 16:8, expected 0 <= start < end");
  CHECK(of({{-1, 8}, {8, 16}, {16, 26}}) == "model.windows: -1:8, expected 0 <= start < end");
  CHECK(of({{0, 0}, {8, 16}, {16, 26}}) == "model.windows: 0:0, expected 0 <= start < end");
  CHECK(of({{0, 8}, {8, 16}, {16, INT64_MAX}}) == "model.windows: 9223372036854775807, expected 2147483647 or less");
  CHECK(of({{8, 16}, {0, 20}, {16, 26}}) == "model.windows: 8:16 of a finer scale precedes 0:20, expected windows from near to far");
  CHECK(of({{0, 16}, {0, 8}, {16, 26}}) == "model.windows: 0:16 of a finer scale precedes 0:8, expected windows from near to far");
  CHECK(complaint(family_of<Retina>, [](ModelConfig& c) { c.settings<Sdp>().window = 3; }) ==
        "model.window: 3, but a retina has one window per scale; set model.windows");
}

TEST_CASE("multiple scales: the other keys") {
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>, family_of<Coarse>}) {
    const std::string name = name_of(family);
    CHECK(complaint(family, [](ModelConfig& c) { c.causal = false; }) ==
          "model.causal: false, but family " + name + " attends only to complete cells; expected true");
    CHECK(complaint(family, [](ModelConfig& c) { c.mixer = kind_of<Identity>; }) ==
          "model.mixer: identity, but family " + name + " always uses attention; expected sdp");
    CHECK(complaint(family, [](ModelConfig& c) { c.down.conv_kernel = 0; }) == "model.conv_kernel: 0, expected 1 or more");
    CHECK(complaint(family, [](ModelConfig& c) { c.settings<Sdp>().heads = 5; }) == "model.heads: 5 does not divide d = 12");
  }
  for (Family family : {family_of<TopDown>, family_of<BottomUp>}) {
    CHECK(complaint(family, [](ModelConfig& c) {
      c.stack_layers.layers = {1, 1};
    }) == "model.layers: has 2 elements, expected one for each of 3 scales");
    CHECK(complaint(family, [](ModelConfig& c) { c.stack_layers.layers = {}; }) ==
          "model.layers: has 0 elements, expected one for each of 3 scales");
    CHECK(complaint(family, [](ModelConfig& c) { c.stack_layers.layers = {1, 0, 1}; }) == "model.layers: 0, expected 1 or more");
  }
  const auto bags = [](std::vector<double> weights) {
    return complaint(family_of<TopDown>, [&](ModelConfig& c) { c.settings<TopDown>().bag_weights = std::move(weights); });
  };
  CHECK(bags({}) == "no error");
  CHECK(bags({0.5}) == "no error");
  CHECK(bags({0.5, 0}) == "no error");
  CHECK(bags({1, 1, 1}) == "model.bag_weights: has 3 elements, expected one for each of 2 coarse scales");
  CHECK(bags({1, -0.5}) == "model.bag_weights: -0.5, expected 0 or more");
  CHECK(bags({std::nan(""), 1}) == "model.bag_weights: nan, expected 0 or more");
  CHECK(complaint(family_of<Coarse>, [](ModelConfig& c) { c.settings<Coarse>().scale = 0; }) == "model.scale: 0, expected 1 or more");
}

TEST_CASE("multiple scales: values that follow from other keys") {
  ModelConfig c = small_scales(family_of<TopDown>), retina = small_scales(family_of<Retina>);
  c.stack_layers.layers = {2};
  CHECK(resolved(c).stack_layers.layers == std::vector<int64_t>{2, 2, 2});
  const RetinaConfig all = resolved(retina).settings<Retina>();
  CHECK(all.windows == std::vector<Range>{{0, 26}, {0, 26}, {0, 26}});
  CHECK(all.head_groups == std::vector<int64_t>{0, 0, 1, 2});
  retina.ctx = 30, retina.settings<Sdp>().heads = 6;
  CHECK(resolved(retina).settings<Retina>().windows[0] == Range{0, 30});
  CHECK(resolved(retina).settings<Retina>().head_groups == std::vector<int64_t>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("multiple scales: a context shorter than the coarsest cell gives a warning") {
  const auto warned = [](Family family, int64_t ctx) {
    ModelConfig c = small_scales(family);
    c.ctx = ctx, c.scales.scales = {1, 4, 16}, c.settings<Coarse>().scale = 16;
    return warnings(c);
  };
  using Lines = std::vector<std::string>;
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>, family_of<Coarse>}) CHECK(warned(family, 16).empty());
  CHECK(warned(family_of<TopDown>, 15) ==
        Lines{"model.scales: a cell of 16 tokens is longer than the context of 15, so its blocks are never used"});
  CHECK(warned(family_of<BottomUp>, 3) ==
        Lines{"model.scales: a cell of 4 tokens is longer than the context of 3, so its blocks are never used",
            "model.scales: a cell of 16 tokens is longer than the context of 3, so its blocks are never used"});
  CHECK(warned(family_of<Retina>, 15) ==
        Lines{"model.scales: a cell of 16 tokens is longer than the context of 15, so the heads of this scale output zeros"});
  CHECK(warned(family_of<Coarse>, 15) ==
        Lines{"model.scale: a cell of 16 tokens is longer than the context of 15, so the model predicts nothing and learns nothing"});
  CHECK(warnings(ModelConfig()).empty());
}

TEST_CASE("parameter counts of llama, qwen2 and qwen3 models are the published ones") {
  for (const Published& of : std::vector<Published>{{"SmolLM2-135M", 49'152, 576, 30, 1536, 9, 3, 64, 134'515'008},
           {"SmolLM2-360M", 49'152, 960, 32, 2560, 15, 5, 64, 361'821'120},
           {"Qwen2.5-0.5B", 151'936, 896, 24, 4864, 14, 2, 64, 494'032'768, true, false, true},
           {"Qwen3-0.6B", 151'936, 1024, 28, 3072, 16, 8, 128, 596'049'920, true, true},
           {"TinyLlama 1.1B", 32'000, 2048, 22, 5632, 32, 4, 64, 1'100'048'384, false},
           {"Llama-3.2-1B", 128'256, 2048, 16, 8192, 32, 8, 64, 1'235'814'400}}) {
    CAPTURE(of.name);
    CHECK(parameters(of) == of.parameters);
  }
}

TEST_CASE("parameter counts are those of the papers") {
  // WikiText-103: 39M and 36M.
  CHECK(parameters(kind_of<Sdp>, 28'996, 512, 6, 512) == 39'188'804);
  CHECK(parameters(kind_of<Dispatcher>, 28'996, 512, 6, 512) == 36'058'436);
  // One Billion Words: 41M and 38M, with the vocabulary of bert-base-uncased.
  CHECK(parameters(kind_of<Sdp>, 30'522, 512, 6, 512) == 40'752'954);
  CHECK(parameters(kind_of<Dispatcher>, 30'522, 512, 6, 512) == 37'622'586);
  // After OpenWebText, with the vocabulary of GPT-2: 59M.
  CHECK(parameters(kind_of<Dispatcher>, 50'257, 480, 12, 1024) == 59'448'337);
}
