#include "models/planning/published_memory.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace ricci {
namespace {

constexpr double kBytes = 2;  // per value

// The paper's a for norms, dropout and residuals, in units u: 10 in its rows of one layer; in its rows of models 11 in the cells, but
// 12 in the totals.
constexpr double kNormsAlone = 10, kNorms = 11, kNormsOfTotals = 12;

// Top-down the first position that reads all scales 1, 4, 16 and 64.
constexpr double kFirstFull = 63;

class Formula {
 public:
  explicit Formula(const PublishedSetting& setting) : s_(setting) {}

  double u(double length) const { return kBytes * s_.batch * length * s_.d; }

  PublishedMemory layers_alone(const std::string& name, double count, double length) const {
    return {.name = name,
        .qkv = count * 3 * u(length),
        .scores = count * scores(length),
        .projection = count * 2 * u(length),
        .feed_forward = count * 10 * u(length),
        .norms = count * kNormsAlone * u(length)};
  }
  PublishedMemory layers_of_model(const std::string& name, double count, double length) const {
    PublishedMemory row = layers_alone(name, count, length);
    row.norms = count * kNorms * u(length);
    row.in_total_alone = count * (kNormsOfTotals - kNorms) * u(length);
    return row;
  }

  // The embeddings and the logits with their gradient are beside the layers of the finest scale. `scored`: positions with logits.
  PublishedMemory with_ends(PublishedMemory row, double scored) const {
    row.embedding = u(s_.length);
    row.logits = 2 * kBytes * s_.batch * scored * s_.vocab;
    return row;
  }

  // Untied embeddings, no positions.
  double weights(double layers, double more = 0) const {
    return kBytes * (layers * (12 * s_.d * s_.d + 13 * s_.d) + 2 * s_.vocab * s_.d + more);
  }

  // q of the words, k and v of the cells of 4 and 16 tokens, the projection, norms.
  double aggregation() const { return u(s_.length) * (1 + 2 + kNormsAlone) + 2 * u(s_.length / 4) + 2 * u(s_.length / 16); }

 private:
  double scores(double length) const {
    constexpr double kStatistics = 2 * 4;  // bytes of two f32 per row
    if (s_.scores == Scores::fused) return s_.batch * s_.heads * length * kStatistics;
    return 2 * kBytes * s_.batch * length * length * (s_.scores == Scores::materialised ? s_.heads : 1);
  }

  PublishedSetting s_;
};

using Row = PublishedMemory;
constexpr double Row::*kParts[] = {&Row::embedding, &Row::qkv, &Row::scores, &Row::projection, &Row::feed_forward, &Row::norms,
    &Row::logits, &Row::hierarchy, &Row::in_total_alone};

Row sum_of(const std::string& name, const std::vector<Row>& rows, double weights) {
  Row sum{.name = name, .weights = weights};
  for (const Row& row : rows)
    for (double Row::*const part : kParts) sum.*part += row.*part;
  return sum;
}

// Only positions at which every scale is present are scored: 448 of 511 inputs, and at the coarser scales the cells that they read.
std::vector<PublishedMemory> top_down(const Formula& formula, double length) {
  const auto cells = [](double finer) { return std::max(0.0, std::floor((finer - 3) / 4)); };
  const double words = std::max(0.0, length - 1 - kFirstFull);
  const double quarter = cells(words - 1), sixteenth = cells(quarter), coarsest = cells(sixteenth);
  std::vector<PublishedMemory> rows{formula.layers_of_model("top-down 64x, 7 layers", 7, coarsest),
      formula.layers_of_model("top-down 16x, 7 layers", 7, sixteenth), formula.layers_of_model("top-down 4x, 8 layers", 8, quarter),
      formula.with_ends(formula.layers_of_model("top-down 1x, 8 layers", 8, words), words)};
  rows[0].hierarchy = 16 * formula.u(coarsest);
  rows[1].hierarchy = 16 * formula.u(sixteenth);
  rows[2].hierarchy = 16 * formula.u(quarter);
  rows[3].hierarchy = 7 * formula.u(words);
  rows.push_back(sum_of("top-down", rows, formula.weights(30)));
  return rows;
}

std::vector<PublishedMemory> bottom_up(const Formula& formula, const PublishedSetting& s) {
  std::vector<PublishedMemory> rows{formula.layers_of_model("bottom-up 16x, 7 layers", 7, s.length / 16),
      formula.layers_of_model("bottom-up 4x, 8 layers", 8, s.length / 4),
      formula.with_ends(formula.layers_of_model("bottom-up 1x, 8 layers", 8, s.length), s.length)};
  rows[0].hierarchy = formula.u(s.length / 16);
  rows[1].hierarchy = formula.u(s.length / 4);  // their pooled inputs
  rows[2].hierarchy = formula.aggregation();
  rows.push_back(sum_of("bottom-up", rows, formula.weights(23, 4 * s.d * s.d)));
  return rows;
}

}  // namespace

double PublishedMemory::total() const {
  return std::accumulate(std::begin(kParts), std::end(kParts), 0.0, [this](double sum, double Row::*part) { return sum + this->*part; });
}

std::vector<PublishedMemory> published_memory(const PublishedSetting& setting) {
  const Formula formula(setting);
  std::vector<PublishedMemory> all;
  for (const int scale : {1, 4, 16, 64})
    all.push_back(formula.layers_alone("one layer at " + std::to_string(scale) + "x", 1, setting.length / scale));
  all.push_back(formula.with_ends(formula.layers_of_model("vanilla, 12 layers", 12, setting.length), setting.length));
  all.back().weights = formula.weights(12);
  for (const auto& rows : {top_down(formula, setting.length), bottom_up(formula, setting)}) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace ricci
