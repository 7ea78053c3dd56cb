// Masks of every family, cell by cell.
#include "models/inspection/masks.h"

#include "tests/ops/values.h"

using namespace ricci;

namespace {

ModelConfig config_of(Family family, std::vector<int64_t> scales = {1, 4}) {
  ModelConfig config;
  config.family = family, config.vocab = 7, config.ctx = 16, config.d = 16, config.layers = 2;
  config.scales.scales = std::move(scales), config.stack_layers.layers = {1};
  apply_preset(config);
  return config;
}

std::vector<Mask> masks_of(const ModelConfig& config, int64_t tokens) { return masks(Model(config), tokens); }

// "0-0 0-1 -": the first and the last key of each query.
std::string rows_of(const Mask& mask) {
  std::string text;
  for (const Mask::Row& row : mask.rows)
    text += (text.empty() ? "" : " ") +
            (row.end > row.first ? std::to_string(row.first) + "-" + std::to_string(row.end - 1) : std::string("-"));
  return text;
}

}  // namespace

TEST_CASE("masks: a decoder, with a window too") {
  ModelConfig config = config_of(family_of<Decoder>);
  const std::vector<Mask> whole = masks_of(config, 5);
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].layer == "attention");
  CHECK(whole[0].heads == 4);
  CHECK(rows_of(whole[0]) == "0-0 0-1 0-2 0-3 0-4");
  config.settings<Sdp>().window = 2;
  CHECK(rows_of(masks_of(config, 5)[0]) == "0-0 0-1 1-2 2-3 3-4");
  config.mixer = kind_of<Dispatcher>;
  CHECK_THROWS_WITH_AS(masks_of(config, 5), "masks: the dispatcher mixer has no attention, so it has no mask", Error);
}

TEST_CASE("masks: top-down, cells of 4 tokens are read with the token that completes them, or one later") {
  ModelConfig config = config_of(family_of<TopDown>);
  const std::vector<Mask> tight = masks_of(config, 10);
  REQUIRE(tight.size() == 3);
  CHECK(tight[1].layer == "join");
  CHECK(tight[1].heads == 0);
  CHECK(tight[1].query_tokens == 1);
  CHECK(tight[1].key_tokens == 4);
  CHECK(rows_of(tight[1]) == "- - - 0-0 0-0 0-0 0-0 1-1 1-1 1-1");
  CHECK(tight[2].query_tokens == 4);
  CHECK(tight[2].key_tokens == 4);
  CHECK(rows_of(tight[2]) == "0-0 0-1");
  config.settings<TopDown>().shift = Shift::block;
  CHECK(rows_of(masks_of(config, 10)[1]) == "- - - - 0-0 0-0 0-0 0-0 1-1 1-1");
  CHECK(masks_of(config, 3).size() == 1);  // no cell of 4
}

TEST_CASE("masks: bottom-up, the aggregation layer sees complete cells") {
  const std::vector<Mask> masks = masks_of(config_of(family_of<BottomUp>, {1, 2, 4}), 8);
  REQUIRE(masks.size() == 5);
  CHECK(masks[0].layer == "aggregation");
  CHECK(masks[0].first_head == 0);
  CHECK(masks[0].heads == 2);
  CHECK(rows_of(masks[0]) == "- 0-0 0-0 0-1 0-1 0-2 0-2 0-3");
  CHECK(masks[1].first_head == 2);
  CHECK(masks[1].key_tokens == 4);
  CHECK(rows_of(masks[1]) == "- - - 0-0 0-0 0-0 0-0 0-1");
  CHECK(rows_of(masks[4]) == "0-0 0-1");
}

TEST_CASE("masks: a retina's windows, by both rules") {
  ModelConfig config = config_of(family_of<Retina>);
  config.settings<Retina>().windows = {{0, 2}, {2, 8}};
  const std::vector<Mask> inside = masks_of(config, 12);
  REQUIRE(inside.size() == 2);
  CHECK(rows_of(inside[0]) == "0-0 0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9 9-10 10-11");
  // Token 5 is 2 after the end of cell 0. Token 8 is 8 after its begin: outside.
  CHECK(rows_of(inside[1]) == "- - - - - 0-0 0-0 0-0 - 1-1 1-1 1-1");
  config.settings<Retina>().cell_rule = CellRule::end;
  CHECK(rows_of(masks_of(config, 12)[1]) == "- - - - - 0-0 0-0 0-0 0-0 0-1 0-1 1-1");
}
