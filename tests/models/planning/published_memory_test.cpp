// The formula against every cell that the multi-scale paper printed (table 8), in GB of 10^9 bytes.
#include "models/planning/published_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

using namespace ricci;

namespace {

PublishedMemory row(const std::string& name, const PublishedSetting& setting = {}) {
  const auto rows = published_memory(setting);
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const PublishedMemory& each) { return each.name == name; });
  REQUIRE(found != rows.end());
  return *found;
}

// Printed to so many digits, rounded or cut off. Zeros that fill a column up to its width are left out here.
void check_cell(double bytes, const char* printed) {
  CAPTURE(printed);
  const auto digits = static_cast<int>(std::strlen(std::strchr(printed, '.') + 1));
  CHECK(std::abs(bytes * 1e-9 - std::stod(printed)) < std::pow(10.0, -digits));
}

// A row of the paper. Empty: it prints nothing there, or a number that is not the formula's; those are below.
struct Printed {
  const char *name, *embedding, *qkv, *scores, *projection, *feed_forward, *norms, *logits, *hierarchy, *total;
};

const Printed kTable[] = {
    {"one layer at 1x", "", "0.15", "0.06", "0.10", "0.50", "0.50", "", "", "1.325"},
    {"one layer at 4x", "", "0.038", "0.004", "0.025", "0.12", "0.12", "", "", "0.319"},
    {"one layer at 16x", "", "0.009", "0.0003", "0.006", "0.031", "0.031", "", "", "0.079"},
    {"one layer at 64x", "", "0.002", "", "0.002", "0.008", "0.008", "", "", "0.020"},
    {"vanilla, 12 layers", "0.05", "1.81", "0.80531", "1.208", "6.040", "6.644", "4.10", "", "21.26"},
    {"top-down 1x, 8 layers", "0.05", "1.06", "0.41", "0.7", "3.52", "3.87", "3.59", "0.308", ""},
    {"top-down 4x, 8 layers", "", "0.26", "0.025", "", "0.87", "0.96", "", "0.175", ""},
    {"top-down 16x, 7 layers", "", "0.05", "0.001", "0.037", "0.18", "", "", "0.042", "0.545"},
    {"top-down 64x, 7 layers", "", "0.01", "0.00006", "0.008", "0.04", "0.05", "", "0.009", "0.121"},
    {"bottom-up 1x, 8 layers", "0.05", "1.21", "0.536", "0.805", "4.02", "4.42", "4.10", "0.686", ""},
    {"bottom-up 4x, 8 layers", "", "0.30", "0.033", "0.201", "1.00", "1.10", "", "0.013", "2.76"},
    {"bottom-up 16x, 7 layers", "", "0.06", "0.002", "0.044", "0.22", "0.24", "", "0.003", "0.60"},
};

}  // namespace

TEST_CASE("published memory: the cells of the table") {
  int cells = 0;
  for (const Printed& printed : kTable) {
    const std::string name = printed.name;
    CAPTURE(name);
    const PublishedMemory ours = row(name);
    for (const auto& [bytes, text] : {std::pair{ours.embedding, printed.embedding}, {ours.qkv, printed.qkv}, {ours.scores, printed.scores},
             {ours.projection, printed.projection}, {ours.feed_forward, printed.feed_forward}, {ours.norms, printed.norms},
             {ours.logits, printed.logits}, {ours.hierarchy, printed.hierarchy}, {ours.total(), printed.total}})
      if (*text) check_cell(bytes, text), ++cells;
  }
  CHECK(cells == 79);
  check_cell(row("vanilla, 12 layers").weights, "0.266");
  check_cell(row("top-down").weights, "0.521");
  check_cell(row("bottom-up").weights, "0.427");
}

TEST_CASE("published memory: what the paper prints otherwise, by the formula") {
  check_cell(row("one layer at 64x").scores, "0.000016");         // printed: .00005
  check_cell(row("top-down 16x, 7 layers").norms, "0.204");       // .29
  check_cell(row("top-down 4x, 8 layers").projection, "0.1746");  // .176, which 112 cells take
  check_cell(row("top-down 4x, 8 layers").total(), "2.557");      // 2.529
  check_cell(row("top-down 1x, 8 layers").total(), "13.87");      // 14.27
  check_cell(row("bottom-up 1x, 8 layers").total(), "16.247");    // 16.19
}

TEST_CASE("published memory: top-down scores the positions that hear all scales, whatever the length") {
  const auto words = [](double length) { return row("top-down 1x, 8 layers", {.length = length}).logits / (2.0 * 2 * 64 * 31300); };
  CHECK(words(512) == doctest::Approx(448));
  CHECK(words(1024) == doctest::Approx(960));
  CHECK(words(64) == 0);
  CHECK(row("top-down 64x, 7 layers", {.length = 64}).total() == 0);
}

TEST_CASE("published memory: a model is the sum of its scales, and scores count as they are kept") {
  const PublishedMemory sum = row("top-down");
  double parts = 0;
  for (const char* name : {"top-down 64x, 7 layers", "top-down 16x, 7 layers", "top-down 4x, 8 layers", "top-down 1x, 8 layers"})
    parts += row(name).total();
  CHECK(sum.total() == doctest::Approx(parts));
  const double published = row("vanilla, 12 layers").scores;
  CHECK(row("vanilla, 12 layers", {.scores = Scores::materialised}).scores == doctest::Approx(12 * published));
  CHECK(row("vanilla, 12 layers", {.scores = Scores::fused}).scores == doctest::Approx(12.0 * 64 * 12 * 512 * 8));
}
