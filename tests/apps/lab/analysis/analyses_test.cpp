// Analyses, compared with numbers that were counted by hand; Kneser-Ney smoothing of a corpus that is small enough to be counted by hand,
// and of one that has every count; repeated n-grams and BLEU.
#include "apps/lab/analysis/analyses.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/lab/analysis/sample_metrics.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

std::vector<int64_t> random_text(size_t tokens, int64_t vocab) {
  Sequence sequence(7);
  std::vector<int64_t> text;
  // The smaller of two draws: some tokens are much more frequent than others.
  for (size_t i = 0; i < tokens; ++i) {
    const auto a = static_cast<int64_t>(sequence.below(static_cast<uint64_t>(vocab))),
               b = static_cast<int64_t>(sequence.below(static_cast<uint64_t>(vocab)));
    text.push_back(std::min(a, b));
  }
  return text;
}

}  // namespace

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

// The text a b a c a b over the vocabulary a b c d. Pairs: ab 2, ba 1, ac 1, ca 1. Different tokens in front of a: 2 (b, c), of b: 1, of c:
// 1, of d: none. No count is 3 or 4, so that the discounts are 0.5, 1, 1.5.
TEST_CASE("Kneser-Ney: bigrams counted by hand") {
  const std::vector<int64_t> text = {0, 1, 0, 2, 0, 1};
  const KneserNey model(text, 2, 4);
  CHECK(model.discounts(2) == std::array{0.5, 1.0, 1.5});
  // Single tokens: counts 2, 1, 1 of 4; they give away 1 + 2 x 0.5 = 2, a quarter of that half to each token of the vocabulary.
  const double a = (2 - 1) / 4.0 + 0.5 / 4, b = (1 - 0.5) / 4.0 + 0.5 / 4, d = 0.5 / 4;
  CHECK(model.probability(std::vector<int64_t>{0}) == doctest::Approx(a).epsilon(1e-14));
  CHECK(model.probability(std::vector<int64_t>{1}) == doctest::Approx(b).epsilon(1e-14));
  CHECK(model.probability(std::vector<int64_t>{3}) == doctest::Approx(d).epsilon(1e-14));
  // Behind a: ab 2, ac 1, together 3; they give away 1 + 0.5.
  CHECK(model.probability(std::vector<int64_t>{0, 1}) == doctest::Approx((2 - 1) / 3.0 + 1.5 / 3 * b).epsilon(1e-14));
  CHECK(model.probability(std::vector<int64_t>{0, 2}) == doctest::Approx((1 - 0.5) / 3.0 + 1.5 / 3 * b).epsilon(1e-14));
  CHECK(model.probability(std::vector<int64_t>{0, 3}) == doctest::Approx(1.5 / 3 * d).epsilon(1e-14));
  // Behind d nothing was seen. Only the last token of a longer history is read.
  CHECK(model.probability(std::vector<int64_t>{3, 0}) == doctest::Approx(a).epsilon(1e-14));
  CHECK(model.probability(std::vector<int64_t>{2, 2, 0, 1}) == model.probability(std::vector<int64_t>{0, 1}));
  const double nats = -(std::log((2 - 1) / 3.0 + 1.5 / 3 * b) + std::log(1.5 / 3 * d)) / 2;
  CHECK(model.nats_per_token(std::vector<int64_t>{0, 1, 0, 3}, 1) ==
        doctest::Approx((2 * nats - std::log(model.probability(std::vector<int64_t>{1, 0}))) / 3).epsilon(1e-14));
}

// Single tokens with counts 1, 1, 1, 2, 2, 3, 4: n_1 = 3, n_2 = 2, n_3 = 1, n_4 = 1, Y = 3 / 7.
TEST_CASE("Kneser-Ney: discounts by the counts of counts") {
  const std::vector<int64_t> text = {0, 1, 2, 3, 3, 4, 4, 5, 5, 5, 6, 6, 6, 6};
  const KneserNey model(text, 1, 7);
  const auto [d1, d2, d3] = model.discounts(1);
  CHECK(d1 == doctest::Approx(1 - 2 * 3 / 7.0 * 2 / 3.0));
  CHECK(d2 == doctest::Approx(2 - 3 * 3 / 7.0 * 1 / 2.0));
  CHECK(d3 == doctest::Approx(3 - 4 * 3 / 7.0 * 1 / 1.0));
}

TEST_CASE("Kneser-Ney: probabilities behind any history add up to one") {
  constexpr int64_t kVocab = 23;
  const std::vector<int64_t> text = random_text(4000, kVocab - 1);  // one token never occurs
  const KneserNey model(text, 4, kVocab);
  CHECK(model.discounts(2) != std::array{0.5, 1.0, 1.5});
  for (const std::vector<int64_t>& history :
      std::vector<std::vector<int64_t>>{{}, {0}, {3, 1}, {0, 0, 0}, {text[10], text[11], text[12]}, {22, 0, 1}, {21, 20, 19}, {5, 22}}) {
    double sum = 0;
    for (int64_t w = 0; w < kVocab; ++w) {
      std::vector<int64_t> tokens = history;
      tokens.push_back(w);
      const double p = model.probability(tokens);
      CHECK(p > 0);
      sum += p;
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-12));
  }
}

// Pairs: 00 2, 11 3, 22 3, 33 4; 01, 12, 23 once. n_1 = 3, n_2 = 1, n_3 = 2, n_4 = 1, Y = 3 / 5, and 2 - 3 Y n_3 / n_2 is below 0.
TEST_CASE("Kneser-Ney: every history leaves something for the tokens that it was not seen with") {
  const std::vector<int64_t> text = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3};
  const KneserNey model(text, 2, 6);
  CHECK(model.discounts(2)[0] == doctest::Approx(1 - 2 * 0.6 * 1 / 3));
  CHECK(model.discounts(2)[1] == 1);
  for (int64_t h = 0; h < 6; ++h) {
    double sum = 0;
    for (int64_t w = 0; w < 6; ++w) {
      const double p = model.probability(std::vector<int64_t>{h, w});
      CHECK(p > 0);
      sum += p;
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("Kneser-Ney: errors") {
  const std::vector<int64_t> text = {0, 1, 2};
  CHECK(error_of([&] { KneserNey(text, 0, 3); }) == "Kneser-Ney: n-grams of 0, expected 1 .. 5");
  CHECK(error_of([&] { KneserNey(text, 4, 3); }) == "Kneser-Ney: a text of 3 tokens, expected 4 or more");
  CHECK(error_of([&] { KneserNey(text, 2, 2); }) == "Kneser-Ney: token 2 is outside 0 .. 1");
  const KneserNey model(text, 2, 3);
  CHECK(error_of([&] { (void)model.probability({}); }) == "Kneser-Ney: no token");
  CHECK(error_of([&] { (void)model.probability(std::vector<int64_t>{-1}); }) == "Kneser-Ney: token -1 is outside 0 .. 2");
  CHECK(error_of([&] { (void)model.nats_per_token(text, 3); }) == "Kneser-Ney: from token 3 of 3 on");
}

TEST_CASE("sample metrics: the share of n-grams that were there before") {
  const std::vector<int64_t> ids = {1, 2, 1, 2, 3, 1, 2, 1};
  CHECK(repeated_share(ids, 1) == 1 - 3 / 8.0);
  CHECK(repeated_share(ids, 2) == 1 - 4 / 7.0);  // 12 21 23 31
  CHECK(repeated_share(ids, 3) == 1 - 5 / 6.0);  // 121 212 123 231 312
  CHECK(repeated_share(ids, 4) == 0);
  CHECK(repeated_share(std::vector<int64_t>(256, 5), 4) == 1 - 1 / 253.0);
  CHECK(repeated_share(std::vector<int64_t>{1, 2}, 3) == 0);
}

// The example of Papineni et al.: "the" is counted twice at most, since no reference has it more often.
TEST_CASE("sample metrics: BLEU, clipped, of several references, with the penalty for short candidates") {
  const auto bleu = [](const std::string& candidate, const std::vector<std::string>& references) {
    std::vector<std::vector<std::string>> all;
    for (const std::string& reference : references) all.push_back(words_of(reference));
    Bleu value;
    value.add(words_of(candidate), all);
    return value.value();
  };
  CHECK(bleu("the cat is on the mat", {"the cat is on the mat"}) == doctest::Approx(100));
  CHECK(bleu("the the the the the the the", {"the cat is on the mat", "there is a cat on the mat"}) == 0);
  // The precisions are 5/6, 4/5, 3/4 and 2/3. Their product is 1/3, and both texts have the same length.
  CHECK(bleu("the cat is on the rug", {"the cat is on the mat"}) == doctest::Approx(100 * std::pow(1 / 3.0, 0.25)));
  // All precisions are 1, and 5 words stand against 6. A second reference of 5 words takes the penalty away; one of 4 is as near as one of
  // 6, and the shorter counts.
  CHECK(bleu("the cat is on the", {"the cat is on the mat"}) == doctest::Approx(100 * std::exp(1 - 6 / 5.0)));
  CHECK(bleu("the cat is on the", {"the cat is on the mat", "a dog was not there"}) == doctest::Approx(100));
  CHECK(bleu("the cat is on the", {"the cat is on the mat", "a dog was there"}) == doctest::Approx(100));
}

TEST_CASE("sample metrics: BLEU of several texts adds up their n-grams") {
  Bleu both;
  both.add(words_of("a b c d e"), {words_of("a b c d e")});
  both.add(words_of("v w x y z"), {words_of("z y x w v")});
  // 5 + 5 of 10 words, 4 + 0 of 8, 3 of 6, 2 of 4.
  CHECK(both.value() == doctest::Approx(100 * std::pow(1 * 0.5 * 0.5 * 0.5, 0.25)));
  CHECK(Bleu().value() == 0);
  CHECK(words_of(" a\n\tb  c ") == std::vector<std::string>{"a", "b", "c"});
}
