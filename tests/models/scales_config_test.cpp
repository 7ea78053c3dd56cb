// The keys of the families of several scales: every rule by its message, what follows from other keys, warnings.
#include "models/config.h"
#include "tests/models/families/scale_cases.h"

using namespace ricci;

namespace {

std::string complaint(Family family, const std::function<void(ModelConfig&)>& change) {
  ModelConfig config = small_scales(family);
  change(config);
  return message_of([&] { check(config); });
}

}  // namespace

TEST_CASE("several scales: their list") {
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>}) {
    const auto of = [&](std::vector<int64_t> scales) {
      return complaint(family, [&](ModelConfig& c) { c.scales.scales = std::move(scales), c.stack_layers.layers = {1}; });
    };
    CHECK(of({1, 2, 6}) == "no error");
    CHECK(of({1, 4, 6}) == "model.scales: 4 does not divide 6");
    CHECK(of({1, 4, 4}) == "model.scales: 4 after 4, expected larger ones after smaller ones");
    CHECK(of({1, 16, 4}) == "model.scales: 4 after 16, expected larger ones after smaller ones");
    CHECK(of({2, 4}) == "model.scales: begins with 2, expected 1");
    CHECK(of({}) == "model.scales: begins with nothing, expected 1");
    CHECK(of({1, int64_t{1} << 30}) == "model.scales: 1073741824, expected 16777216 or less");
  }
}

TEST_CASE("several scales: heads are divided among them") {
  const auto five = [](ModelConfig& c) { c.scales.scales = {1, 2, 4, 8, 16}, c.stack_layers.layers = {1}; };
  CHECK(complaint(family_of<Retina>, five) == "model.scales: 5 scales, but only 4 heads to divide among them");
  CHECK(complaint(family_of<BottomUp>, five) == "no error");
  CHECK(complaint(family_of<TopDown>, five) == "no error");
  CHECK(complaint(family_of<BottomUp>, [](ModelConfig& c) { c.settings<Sdp>().heads = 1; }) ==
        "model.scales: 2 coarse ones, but only 1 heads to divide among them");
  CHECK(complaint(family_of<BottomUp>, [](ModelConfig& c) { c.scales.scales = {1}, c.stack_layers.layers = {1}; }) ==
        "model.scales: only 1, expected a coarser one for the aggregation layer");
  const auto normed = [](ModelConfig& c) { c.settings<Sdp>().qk_norm = true; };
  CHECK(complaint(family_of<Retina>, normed) == "model.qk_norm: true, but the attention of a retina has no such norms");
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
  }) == "model.head_groups: 2 numbers for 4 heads");
  CHECK(complaint(family_of<Retina>, [](ModelConfig& c) {
    c.settings<Retina>().head_groups = {0, 1, 2, 3};
  }) == "model.head_groups: 3, expected 0 .. 2");
  CHECK(complaint(family_of<Retina>, [](ModelConfig& c) {
    c.settings<Retina>().head_groups = {0, 1, -1, 2};
  }) == "model.head_groups: -1, expected 0 .. 2");
}

TEST_CASE("several scales: windows") {
  const auto of = [](std::vector<Range> windows) {
    return complaint(family_of<Retina>, [&](ModelConfig& c) { c.settings<Retina>().windows = std::move(windows); });
  };
  CHECK(of({{0, 8}, {4, 16}, {8, 26}}) == "no error");
  CHECK(of({{0, 8}, {0, 8}, {0, 8}}) == "no error");
  CHECK(of({{0, 8}, {8, 26}}) == "model.windows: 2 windows for 3 scales");
  CHECK(of({{0, 8}, {16, 8}, {16, 26}}) == "model.windows: 16:8, expected 0 or more, and the end after the begin");
  CHECK(of({{-1, 8}, {8, 16}, {16, 26}}) == "model.windows: -1:8, expected 0 or more, and the end after the begin");
  CHECK(of({{0, 0}, {8, 16}, {16, 26}}) == "model.windows: 0:0, expected 0 or more, and the end after the begin");
  CHECK(of({{0, 8}, {8, 16}, {16, INT64_MAX}}) == "model.windows: 9223372036854775807, expected 2147483647 or less");
  CHECK(of({{8, 16}, {0, 20}, {16, 26}}) == "model.windows: 8:16 of a finer scale before 0:20, expected nearer ones before farther ones");
  CHECK(of({{0, 16}, {0, 8}, {16, 26}}) == "model.windows: 0:16 of a finer scale before 0:8, expected nearer ones before farther ones");
  CHECK(complaint(family_of<Retina>, [](ModelConfig& c) { c.settings<Sdp>().window = 3; }) ==
        "model.window: 3, but a retina has windows per scale: model.windows");
}

TEST_CASE("several scales: the other keys") {
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>, family_of<Coarse>}) {
    const std::string name = name_of(family);
    CHECK(complaint(family, [](ModelConfig& c) { c.causal = false; }) ==
          "model.causal: false, but family " + name + " reads cells only when they are complete");
    CHECK(complaint(family, [](ModelConfig& c) { c.mixer = kind_of<Identity>; }) ==
          "model.mixer: identity, but family " + name + " has an attention of its own, expected sdp");
    CHECK(complaint(family, [](ModelConfig& c) { c.down.conv_kernel = 0; }) == "model.conv_kernel: 0, expected 1 or more");
    CHECK(complaint(family, [](ModelConfig& c) { c.settings<Sdp>().heads = 5; }) == "model.heads: 5 does not divide d = 12");
  }
  for (Family family : {family_of<TopDown>, family_of<BottomUp>}) {
    CHECK(complaint(family, [](ModelConfig& c) { c.stack_layers.layers = {1, 1}; }) == "model.layers: 2 numbers for 3 scales");
    CHECK(complaint(family, [](ModelConfig& c) { c.stack_layers.layers = {}; }) == "model.layers: 0 numbers for 3 scales");
    CHECK(complaint(family, [](ModelConfig& c) { c.stack_layers.layers = {1, 0, 1}; }) == "model.layers: 0, expected 1 or more");
  }
  const auto bags = [](std::vector<double> weights) {
    return complaint(family_of<TopDown>, [&](ModelConfig& c) { c.settings<TopDown>().bag_weights = std::move(weights); });
  };
  CHECK(bags({}) == "no error");
  CHECK(bags({0.5}) == "no error");
  CHECK(bags({0.5, 0}) == "no error");
  CHECK(bags({1, 1, 1}) == "model.bag_weights: 3 numbers for 2 coarse scales");
  CHECK(bags({1, -0.5}) == "model.bag_weights: -0.5, expected 0 or more");
  CHECK(bags({std::nan(""), 1}) == "model.bag_weights: nan, expected 0 or more");
  CHECK(complaint(family_of<Coarse>, [](ModelConfig& c) { c.settings<Coarse>().scale = 0; }) == "model.scale: 0, expected 1 or more");
}

TEST_CASE("several scales: what follows from other keys") {
  ModelConfig c = small_scales(family_of<TopDown>), retina = small_scales(family_of<Retina>);
  c.stack_layers.layers = {2};
  resolve(c), resolve(retina);
  CHECK(c.stack_layers.layers == std::vector<int64_t>{2, 2, 2});
  CHECK(retina.settings<Retina>().windows == std::vector<Range>{{0, 26}, {0, 26}, {0, 26}});
  CHECK(retina.settings<Retina>().head_groups == std::vector<int64_t>{0, 0, 1, 2});
}

TEST_CASE("several scales: a context shorter than the coarsest cell is a warning that says what is lost") {
  const auto warned = [](Family family, int64_t ctx) {
    ModelConfig c = small_scales(family);
    c.ctx = ctx, c.scales.scales = {1, 4, 16}, c.settings<Coarse>().scale = 16;
    return warnings(c);
  };
  using Lines = std::vector<std::string>;
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>, family_of<Coarse>}) CHECK(warned(family, 16).empty());
  CHECK(warned(family_of<TopDown>, 15) ==
        Lines{"model.scales: a cell of 16 tokens is longer than the context of 15: its 1 blocks are never used"});
  CHECK(warned(family_of<BottomUp>, 3) ==
        Lines{"model.scales: a cell of 4 tokens is longer than the context of 3: its 2 blocks are never used",
            "model.scales: a cell of 16 tokens is longer than the context of 3: its 1 blocks are never used"});
  CHECK(warned(family_of<Retina>, 15) ==
        Lines{"model.scales: a cell of 16 tokens is longer than the context of 15: the heads of this scale give zero"});
  CHECK(warned(family_of<Coarse>, 15) ==
        Lines{"model.scale: a cell of 16 tokens is longer than the context of 15: the model predicts nothing and learns nothing"});
  CHECK(warnings(ModelConfig()).empty());
}
