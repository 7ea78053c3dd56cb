// The numbers of analyses, compared with a calculation by hand.
#include "apps/lab/analysis/analyses.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

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
  Sequence sequence(3);
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

TEST_CASE("shuffle: another order of the same ids, by seed and window") {
  const auto shuffled = [](size_t size, uint64_t seed, uint64_t window) {
    std::vector<int64_t> ids(64);
    std::iota(ids.begin(), ids.end(), 100);
    shuffle(std::span(ids).first(size), seed, window);
    return ids;
  };
  const std::vector<int64_t> ids = shuffled(1, 1, 0), mixed = shuffled(32, 1, 0);
  CHECK(ids[0] == 100);
  CHECK(std::is_sorted(ids.begin(), ids.end()));
  CHECK(std::equal(ids.begin() + 32, ids.end(), mixed.begin() + 32));
  CHECK_FALSE(std::equal(ids.begin(), ids.begin() + 32, mixed.begin()));
  CHECK(std::is_permutation(ids.begin(), ids.begin() + 32, mixed.begin()));
  CHECK(shuffled(32, 1, 0) == mixed);
  CHECK(shuffled(32, 1, 1) != mixed);
  CHECK(shuffled(32, 2, 0) != mixed);
}

// Two windows of 8 tokens: position 3 is the last shuffled one, and predicts the first of 5 distances.
TEST_CASE("shuffle: means and standard errors by distance") {
  const std::vector<double> before = {90, 90, 90, 1, 2, 3, 4, 5, 90, 90, 90, 3, 4, 5, 6, 7},
                            after = {80, 70, 60, 5, 5, 5, 5, 5, 80, 70, 60, 5, 5, 5, 7, 9};
  const std::vector<ShuffleRow> each = shuffle_rows(before, after, 8, false), ranges = shuffle_rows(before, after, 8, true);
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
  const std::vector<Ranked> top = most_probable(logits, 3);
  REQUIRE(top.size() == 3);
  CHECK(top[0].index == 1);
  CHECK(top[0].score == doctest::Approx(0.4));
  CHECK(top[1].index == 2);
  CHECK(top[1].score == doctest::Approx(0.2));
  CHECK(top[2].index == 3);
  CHECK(most_probable(logits, 100).size() == 5);
}

// Four chunks of two windows in the plane, around (1, 1).
TEST_CASE("neighbours: cosines of vectors without their mean, of other windows only") {
  Chunks chunks{.tokens = 4, .is_mean = false, .per_window = 2, .width = 2, .vectors = {3, 1, -1, 1, 1, 3, 1, -1}};
  centre(chunks);
  CHECK(chunks.vectors == std::vector<double>{1, 0, -1, 0, 0, 1, 0, -1});
  Chunks tilted{.tokens = 4, .is_mean = false, .per_window = 2, .width = 2, .vectors = {1, 0, 0, 1, 0.6, 0.8, -0.8, 0.6}};
  const std::vector<Ranked> near = nearest_chunks(tilted, 0, 5);
  REQUIRE(near.size() == 2);  // not itself, not the next chunk of the window
  CHECK(near[0].index == 2);
  CHECK(near[0].score == doctest::Approx(0.6));
  CHECK(near[1].index == 3);
  CHECK(near[1].score == doctest::Approx(-0.8));
  CHECK(nearest_chunks(tilted, 2, 1)[0].index == 1);
}

TEST_CASE("memory: the plan of a step, with the batch of the options") {
  TrainConfig config;
  config.model.vocab = 50, config.model.ctx = 16, config.model.d = 32, config.batch = 2;
  apply_preset(config);
  const MemoryRow row = memory_row("a", config, config.model, {});
  CHECK(row.family == family_of<Decoder>);
  CHECK(memory_row("b", config, config.model, {.batch = 8}).memory.working > 3 * row.memory.working);
}

TEST_CASE("samples: the share of n-grams that repeat an earlier one") {
  const Ids ids = {1, 2, 1, 2, 3, 1, 2, 1};
  CHECK(repeated_shares({ids}) == Shares{1 - 3 / 8.0, 1 - 4 / 7.0, 1 - 5 / 6.0, 0});  // 1 2 3; 12 21 23 31; 121 212 123 231 312
  CHECK(repeated_shares({Ids(256, 5)})[3] == 1 - 1 / 253.0);
  CHECK(repeated_shares({Ids{1, 1}})[2] == 0);
  CHECK(repeated_shares({ids, {1, 1}})[0] == (1 - 3 / 8.0 + 0.5) / 2);  // a mean over texts
}

// The example of Papineni et al.: "the" counts at most twice, its largest count in a reference.
TEST_CASE("samples: BLEU, clipped, with two references, with the penalty for short candidates") {
  const auto score = [](const std::string& candidate, const std::vector<std::string>& references) {
    std::vector<Words> all;
    for (const std::string& reference : references) all.push_back(words_of(reference));
    return bleu({{words_of(candidate), all}});
  };
  CHECK(score("the cat is on the mat", {"the cat is on the mat"}) == doctest::Approx(100));
  CHECK(score("the the the the the the the", {"the cat is on the mat", "there is a cat on the mat"}) == 0);
  // The precisions are 5/6, 4/5, 3/4 and 2/3, with the product 1/3. Both texts have equal lengths.
  CHECK(score("the cat is on the rug", {"the cat is on the mat"}) == doctest::Approx(100 * std::pow(1 / 3.0, 0.25)));
  // All precisions are 1, with 5 words against 6. A second reference of 5 words removes the penalty. A reference of 4 words is as near as
  // one of 6, and the shorter one applies.
  CHECK(score("the cat is on the", {"the cat is on the mat"}) == doctest::Approx(100 * std::exp(1 - 6 / 5.0)));
  CHECK(score("the cat is on the", {"the cat is on the mat", "a dog was not there"}) == doctest::Approx(100));
  CHECK(score("the cat is on the", {"the cat is on the mat", "a dog was there"}) == doctest::Approx(100));
}

TEST_CASE("samples: BLEU of two texts adds up their n-grams") {
  // 5 + 5 of 10 words, 4 + 0 of 8, 3 of 6, 2 of 4.
  CHECK(bleu({{words_of("a b c d e"), {words_of("a b c d e")}}, {words_of("v w x y z"), {words_of("z y x w v")}}}) ==
        doctest::Approx(100 * std::pow(1 * 0.5 * 0.5 * 0.5, 0.25)));
  CHECK(bleu({}) == 0);
  CHECK(words_of(" a\n\tb  c ") == Words{"a", "b", "c"});
}
