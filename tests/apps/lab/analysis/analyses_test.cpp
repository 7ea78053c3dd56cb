// Analyses, compared with numbers that were counted by hand.
#include "apps/lab/analysis/analyses.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using test_data::error_of;

// Token 2 is the most frequent in training, then 0, 3, 1; token 4 was not scored. 8 scored tokens: a bin holds 4 of them.
TEST_CASE("frequency: bins of equal mass, a token in two of them with a share in each") {
  const std::vector<TokenScore> scores = {{50, 3, 6.0}, {1, 1, 5.0}, {90, 3, 3.0}, {50, 1, 4.0}, {70, 0, 0}};
  const std::vector<FrequencyBin> bins = frequency_bins(scores, 2);
  REQUIRE(bins.size() == 2);
  CHECK(bins[0].tokens == doctest::Approx(4));
  CHECK(bins[0].nats == doctest::Approx((3 * 1.0 + 1 * 2.0) / 4));
  CHECK(bins[0].kinds == 2);
  CHECK(bins[0].max == 90);
  CHECK(bins[0].min == 50);
  CHECK(bins[1].tokens == doctest::Approx(4));
  CHECK(bins[1].nats == doctest::Approx((2 * 2.0 + 4.0 + 5.0) / 4));
  CHECK(bins[1].kinds == 3);
  CHECK(bins[1].max == 50);
  CHECK(bins[1].min == 1);
}

TEST_CASE("frequency: the mean over bins is the mean over tokens, whatever the number of bins") {
  test_data::Sequence sequence(3);
  std::vector<TokenScore> scores(57);
  double nats = 0, tokens = 0;
  for (TokenScore& score : scores) {
    score = {static_cast<int64_t>(sequence.below(100)), static_cast<int64_t>(sequence.below(40)), 0};
    score.nats = static_cast<double>(score.scored) * static_cast<double>(sequence.below(9));
    nats += score.nats, tokens += static_cast<double>(score.scored);
  }
  for (const int64_t count : {1, 5, 7, 10, 1000}) {
    double mean = 0;
    for (const FrequencyBin& bin : frequency_bins(scores, count)) {
      CHECK(bin.tokens == doctest::Approx(tokens / static_cast<double>(count)));
      mean += bin.nats / static_cast<double>(count);
    }
    CHECK(mean == doctest::Approx(nats / tokens));
  }
  CHECK(error_of([] { frequency_bins(std::vector<TokenScore>(3), 5); }) == "frequency: no token was scored");
}

TEST_CASE("shuffle: the first half is put in another order, the second half is left alone") {
  std::vector<int64_t> ids(64);
  std::iota(ids.begin(), ids.end(), 100);
  const std::vector<int64_t> mixed = with_shuffled_start(ids, 32, 1, 0);
  CHECK(std::equal(ids.begin() + 32, ids.end(), mixed.begin() + 32));
  CHECK_FALSE(std::equal(ids.begin(), ids.begin() + 32, mixed.begin()));
  CHECK(std::is_permutation(ids.begin(), ids.begin() + 32, mixed.begin()));
  CHECK(with_shuffled_start(ids, 32, 1, 0) == mixed);
  CHECK(with_shuffled_start(ids, 32, 1, 1) != mixed);
  CHECK(with_shuffled_start(ids, 32, 2, 0) != mixed);
  CHECK(with_shuffled_start(ids, 1, 1, 0) == ids);
}

// Two windows with 5 distances.
TEST_CASE("shuffle: means and standard errors by distance") {
  const std::vector<double> nats = {1, 2, 3, 4, 5, 3, 4, 5, 6, 7}, increases = {4, 3, 2, 1, 0, 2, 1, 0, 1, 2};
  const std::vector<ShuffleRow> each = shuffle_rows(nats, increases, 5, false), ranges = shuffle_rows(nats, increases, 5, true);
  REQUIRE(each.size() == 5);
  CHECK(each[1].distance == 2);
  CHECK(each[1].last_distance == 2);
  CHECK(each[1].nats == 3);
  CHECK(each[1].increase == 2);
  CHECK(each[1].error == doctest::Approx(1));  // the windows have 3 and 1: deviation sqrt(2), over sqrt(2)
  REQUIRE(ranges.size() == 4);                 // 1, 2, 3 - 4, 5
  CHECK(ranges[2].distance == 3);
  CHECK(ranges[2].last_distance == 4);
  CHECK(ranges[2].nats == 4.5);
  CHECK(ranges[2].increase == 1);
  CHECK(ranges[2].error == doctest::Approx(0.5));  // the windows have 1.5 and 0.5
  CHECK(ranges[3].distance == 5);
  CHECK(ranges[3].last_distance == 5);
}

TEST_CASE("completions: the most probable tokens, the first of equal ones first") {
  const std::vector<double> logits = {std::log(1.0), std::log(4.0), std::log(2.0), std::log(2.0), std::log(1.0)};
  const std::vector<Expected> top = most_probable(logits, 3);
  REQUIRE(top.size() == 3);
  CHECK(top[0].id == 1);
  CHECK(top[0].probability == doctest::Approx(0.4));
  CHECK(top[1].id == 2);
  CHECK(top[1].probability == doctest::Approx(0.2));
  CHECK(top[2].id == 3);
  CHECK(most_probable(logits, 100).size() == 5);
}

// Four chunks of two windows in the plane, around (1, 1).
TEST_CASE("neighbours: cosines of vectors without their mean, of other windows only") {
  Chunks chunks{.tokens = 4, .is_mean = false, .per_window = 2, .width = 2, .vectors = {3, 1, -1, 1, 1, 3, 1, -1}};
  centre(chunks);
  CHECK(chunks.vectors == std::vector<double>{1, 0, -1, 0, 0, 1, 0, -1});
  Chunks tilted{.tokens = 4, .is_mean = false, .per_window = 2, .width = 2, .vectors = {1, 0, 0, 1, 0.6, 0.8, -0.8, 0.6}};
  const std::vector<NearChunk> near = nearest_chunks(tilted, 0, 5);
  REQUIRE(near.size() == 2);  // not itself, not its neighbour in the window
  CHECK(near[0].chunk == 2);
  CHECK(near[0].cosine == doctest::Approx(0.6));
  CHECK(near[1].chunk == 3);
  CHECK(near[1].cosine == doctest::Approx(-0.8));
  CHECK(nearest_chunks(tilted, 2, 1)[0].chunk == 1);
}

TEST_CASE("memory: a step is measured where it fits, and then holds what the plan says") {
  TrainConfig config;
  config.model.vocab = 50, config.model.ctx = 16, config.model.d = 32, config.batch = 2;
  apply_preset(config);
  resolve(config);
  const MemoryRow measured = memory_row("a", config, {.runs = {}}), planned = memory_row("b", config, {.runs = {}, .measured = 1});
  CHECK_FALSE(measured.is_planned);
  CHECK(planned.is_planned);
  CHECK(measured.family == "decoder");
  CHECK(measured.memory.parameters == planned.memory.parameters);
  const auto near = [](int64_t a, int64_t b) { return static_cast<double>(a) == doctest::Approx(static_cast<double>(b)).epsilon(0.01); };
  CHECK(near(measured.memory.peak, planned.memory.peak));
  CHECK(near(measured.memory.working, planned.memory.working));
  CHECK(memory_row("c", config, {.runs = {}, .batch = 8}).memory.working > 3 * measured.memory.working);
}
