// Model configs: every rule by its message, what presets set, what follows from other keys.
#include "models/config.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <set>
#include <type_traits>
#include <variant>

#include "tests/data/files.h"

using namespace ricci;
using test_data::error_of;

namespace {

// The message of check for the default config with a vocabulary, after a change.
std::string complaint(const std::function<void(ModelConfig&)>& change) {
  ModelConfig config;
  config.vocab = 65;
  change(config);
  return error_of([&] { check(config); });
}

// Both are members of one type.
bool same_value(const FieldValue& a, const FieldValue& b) {
  const auto equals_b = [&]<class Member>(const Member& member) {
    const Member& other = std::get<Member>(b);
    if constexpr (std::is_same_v<Member, ChoiceMember>) return *member.number == *other.number;
    else return *member == *other;
  };
  return std::visit(equals_b, a);
}

}  // namespace

TEST_CASE("model config: the defaults are a model, once the vocabulary is known") {
  CHECK(complaint([](ModelConfig&) {}) == "no error");
  CHECK(complaint([](ModelConfig& c) { c.vocab = 0; }) == "model.vocab: 0, expected 1 or more");
}

TEST_CASE("model config: of the keys that are read none stands twice, and each has a description") {
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
  for (const double p : {1.0, -0.1, 2.5}) {
    const std::string error = complaint([&](ModelConfig& c) { c.block.dropout = p; });
    CHECK(error == format_message("model.dropout: {}, expected 0 or more and less than 1", {p}));
  }
  CHECK(complaint([](ModelConfig& c) { c.block.dropout = std::nan(""); }) == "model.dropout: nan, expected 0 or more and less than 1");
  CHECK(complaint([](ModelConfig& c) { c.block.dropout = 0.999; }) == "no error");
}

TEST_CASE("model config: presets") {
  ModelConfig defaults, gpt, msa;
  apply_preset(gpt);
  const std::vector<Field> expected = fields_of(defaults), fields = fields_of(gpt);
  REQUIRE(fields.size() == expected.size());
  for (size_t i = 0; i < fields.size(); ++i) CHECK_MESSAGE(same_value(fields[i].value, expected[i].value), fields[i].key);
  msa.preset = Preset::msa;
  apply_preset(msa);
  CHECK(msa.block.norm == Norm::post);
  CHECK(msa.block.activation == Activation::relu);
  CHECK(msa.embedding.positions == PositionKind::sinusoidal);
  CHECK(msa.embedding.scale_embedding);
  CHECK_FALSE(msa.output.tie);
  CHECK(msa.output.head_bias);
  ModelConfig llama;
  llama.preset = Preset::llama;
  apply_preset(llama);
  CHECK(llama.block.norm_kind == NormKind::rms);
  CHECK(llama.block.activation == Activation::silu);
  CHECK(llama.block.gated);
  CHECK_FALSE(llama.block.bias);
  CHECK_FALSE(llama.block.norm_bias);
  CHECK(llama.embedding.positions == PositionKind::rope);
  CHECK(llama.output.tie);
  CHECK(llama.block.feed_forward(576) == 1536);
  CHECK(llama.block.feed_forward(25) == 128);
}

TEST_CASE("model config: rotary positions and shared keys that cannot be") {
  const auto with_rope = [](ModelConfig& c) { c.embedding.positions = PositionKind::rope; };
  CHECK(complaint([&](ModelConfig& c) { with_rope(c); }) == "no error");
  CHECK(complaint([&](ModelConfig& c) { with_rope(c), c.mixer = kind_of<Dispatcher>; }) ==
        "model.positions: rope, but mixer dispatcher reads by distance already, expected none or learned");
  for (MixerKind mixer : {kind_of<Quad>, kind_of<QuadFull>, kind_of<Metric>, kind_of<AveragePool>, kind_of<Identity>})
    CHECK(complaint([&](ModelConfig& c) { with_rope(c), c.mixer = mixer; }) ==
          "model.positions: rope, but mixer " + std::string(name_of(mixer)) + " does not turn its queries and keys, only sdp does");
  CHECK(complaint([&](ModelConfig& c) { with_rope(c), c.settings<Sdp>().head_width = 5; }) ==
        "model.rope_fraction: 1 of heads of 5 columns are 5 columns, expected an even number, 2 or more");
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

TEST_CASE("model config: what follows from other keys") {
  ModelConfig config;
  config.d = 12;
  CHECK(config.block.feed_forward(12) == 48);
  resolve(config);
  CHECK(config.block.ff == 48);
  config.d = 24;
  resolve(config);
  CHECK(config.block.feed_forward(24) == 48);  // given by now
}

TEST_CASE("model config: names") {
  CHECK(list_of<Preset>() == "gpt, msa, llama");
  CHECK(choice_of<Norm>("norm", "post") == Norm::post);
  CHECK(std::string(name_of(kind_of<Sdp>)) == "sdp");
  CHECK(error_of([] { choice_of<Activation>("model.activation", "swish"); }) ==
        "model.activation: expected one of gelu, gelu_tanh, relu, silu, relu2, got 'swish'");
}

TEST_CASE("model config: gelu is fused with products that have a bias, and with nothing between them") {
  const auto fused = [](const std::function<void(BlockConfig&)>& change) {
    return complaint([&](ModelConfig& c) {
      c.block.fused_gelu = true, c.block.activation = Activation::gelu_tanh;
      change(c.block);
    });
  };
  CHECK(fused([](BlockConfig&) {}) == "no error");
  CHECK(fused([](BlockConfig& c) { c.activation = Activation::gelu; }) == "model.fused_gelu: model.activation is gelu, expected gelu_tanh");
  CHECK(fused([](BlockConfig& c) { c.gated = true; }) == "model.fused_gelu: model.gated is true, expected false");
  CHECK(fused([](BlockConfig& c) { c.bias = false; }) == "model.fused_gelu: model.bias is false, expected true");
  CHECK(fused([](BlockConfig& c) { c.norm = Norm::post; }) == "no error");
  CHECK(fused([](BlockConfig& c) { c.norm = Norm::post, c.dropout = 0.1; }) ==
        "model.fused_gelu: with model.norm: post there is dropout between the two products, expected model.dropout: 0");
}
