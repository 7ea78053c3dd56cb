// The formula against the cells that the multi-scale paper printed (table 8), in GB of 10^9 bytes.
#include "models/planning/published_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace ricci;

namespace {

PublishedMemory row(const std::string& name, const PublishedSetting& setting = {}) {
  const auto rows = published_memory(setting);
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const PublishedMemory& each) { return each.name == name; });
  REQUIRE(found != rows.end());
  return *found;
}

// Printed to so many digits, rounded or cut off.
void check_cell(double bytes, double printed, double digit) {
  CAPTURE(printed);
  CHECK(bytes * 1e-9 > printed - digit);
  CHECK(bytes * 1e-9 < printed + digit);
}

}  // namespace

TEST_CASE("published memory: rows of one layer") {
  check_cell(row("one layer at 1x").total(), 1.325, 1e-3);
  check_cell(row("one layer at 4x").total(), 0.319, 1e-3);
  check_cell(row("one layer at 16x").total(), 0.079, 1e-3);
  check_cell(row("one layer at 64x").total(), 0.020, 1e-3);
}

TEST_CASE("published memory: the vanilla model") {
  const PublishedMemory vanilla = row("vanilla, 12 layers");
  check_cell(vanilla.qkv, 1.812, 1e-3);
  check_cell(vanilla.scores, 0.805, 1e-3);
  check_cell(vanilla.projection, 1.208, 1e-3);
  check_cell(vanilla.feed_forward, 6.040, 1e-3);
  check_cell(vanilla.logits, 4.103, 1e-3);
  check_cell(vanilla.total(), 21.26, 1e-2);
  check_cell(vanilla.weights, 0.266, 1e-3);
}

TEST_CASE("published memory: top-down") {
  check_cell(row("top-down 16x, 7 layers").norms, 0.223, 1e-3);
  check_cell(row("top-down 16x, 7 layers").total(), 0.545, 1e-3);
  check_cell(row("top-down 4x, 8 layers").projection, 0.1746, 1e-4);
  check_cell(row("top-down 4x, 8 layers").total(), 2.557, 1e-3);
  check_cell(row("top-down 1x, 8 layers").hierarchy, 0.308, 1e-3);
  check_cell(row("top-down 1x, 8 layers").feed_forward, 3.52, 1e-2);
  check_cell(row("top-down 1x, 8 layers").total(), 13.87, 1e-2);
  check_cell(row("top-down").weights, 0.521, 1e-3);
}

TEST_CASE("published memory: bottom-up") {
  check_cell(row("bottom-up 1x, 8 layers").hierarchy, 0.686, 1e-3);
  check_cell(row("bottom-up 1x, 8 layers").total(), 16.247, 1e-3);
  check_cell(row("bottom-up").weights, 0.427, 1e-3);
}

TEST_CASE("published memory: a model is the sum of its scales, and scores count as they are kept") {
  const PublishedMemory sum = row("top-down");
  double parts = 0;
  for (const char* name : {"top-down 64x, 7 layers", "top-down 16x, 7 layers", "top-down 4x, 8 layers", "top-down 1x, 8 layers"}) parts += row(name).total();
  CHECK(sum.total() == doctest::Approx(parts));
  const double published = row("vanilla, 12 layers").scores;
  CHECK(row("vanilla, 12 layers", {.scores = Scores::materialised}).scores == doctest::Approx(12 * published));
  CHECK(row("vanilla, 12 layers", {.scores = Scores::fused}).scores == doctest::Approx(12.0 * 64 * 12 * 512 * 8));
}
