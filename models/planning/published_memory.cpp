#include "models/planning/published_memory.h"

#include <cmath>

namespace ricci {
namespace {

constexpr double kBytes = 2;        // of a value
constexpr double kNormsAlone = 10;  // the paper's a: 10 in its rows of one layer, 12 in those of models
constexpr double kNorms = 12;

class Formula {
 public:
  explicit Formula(const PublishedSetting& setting) : s_(setting) {}

  double u(double length) const { return kBytes * s_.batch * length * s_.d; }

  PublishedMemory layers(const std::string& name, double count, double length, double norms = kNorms) const {
    return {.name = name,
            .qkv = count * 3 * u(length),
            .scores = count * scores(length),
            .projection = count * 2 * u(length),
            .feed_forward = count * 10 * u(length),
            .norms = count * norms * u(length)};
  }

  // The embeddings and the logits with their gradient stand beside the layers of the finest scale. `scored`: positions with logits.
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

PublishedMemory sum_of(const std::string& name, const std::vector<PublishedMemory>& rows, double weights) {
  PublishedMemory sum{.name = name};
  for (const PublishedMemory& row : rows) {
    sum.embedding += row.embedding, sum.qkv += row.qkv, sum.scores += row.scores, sum.projection += row.projection;
    sum.feed_forward += row.feed_forward, sum.norms += row.norms, sum.logits += row.logits, sum.hierarchy += row.hierarchy;
  }
  sum.weights = weights;
  return sum;
}

// Only positions at which every scale is present are scored: of 511 inputs 448, and of the coarser scales as many cells as those
// read (models_spec section 3.2).
std::vector<PublishedMemory> top_down(const Formula& formula, double length) {
  const double words = std::floor(length * 7 / 8);
  const double quarter = std::floor((words - 1 - 3) / 4), sixteenth = std::floor((quarter - 3) / 4), coarsest = std::floor((sixteenth - 3) / 4);
  std::vector<PublishedMemory> rows{formula.layers("top-down 64x, 7 layers", 7, coarsest), formula.layers("top-down 16x, 7 layers", 7, sixteenth),
                                    formula.layers("top-down 4x, 8 layers", 8, quarter),
                                    formula.with_ends(formula.layers("top-down 1x, 8 layers", 8, words), words)};
  rows[0].hierarchy = 16 * formula.u(coarsest), rows[1].hierarchy = 16 * formula.u(sixteenth), rows[2].hierarchy = 16 * formula.u(quarter);
  rows[3].hierarchy = 7 * formula.u(words);
  rows.push_back(sum_of("top-down", rows, formula.weights(30)));
  return rows;
}

std::vector<PublishedMemory> bottom_up(const Formula& formula, const PublishedSetting& s) {
  std::vector<PublishedMemory> rows{formula.layers("bottom-up 16x, 7 layers", 7, s.length / 16), formula.layers("bottom-up 4x, 8 layers", 8, s.length / 4),
                                    formula.with_ends(formula.layers("bottom-up 1x, 8 layers", 8, s.length), s.length)};
  rows[0].hierarchy = formula.u(s.length / 16), rows[1].hierarchy = formula.u(s.length / 4);  // their pooled inputs
  rows[2].hierarchy = formula.aggregation();
  rows.push_back(sum_of("bottom-up", rows, formula.weights(23, 4 * s.d * s.d)));
  return rows;
}

}  // namespace

std::vector<PublishedMemory> published_memory(const PublishedSetting& setting) {
  const Formula formula(setting);
  std::vector<PublishedMemory> all;
  for (const int scale : {1, 4, 16, 64}) all.push_back(formula.layers("one layer at " + std::to_string(scale) + "x", 1, setting.length / scale, kNormsAlone));
  all.push_back(formula.with_ends(formula.layers("vanilla, 12 layers", 12, setting.length), setting.length));
  all.back().weights = formula.weights(12);
  for (const auto& rows : {top_down(formula, setting.length), bottom_up(formula, setting)}) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace ricci
