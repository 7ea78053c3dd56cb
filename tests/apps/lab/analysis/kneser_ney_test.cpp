// Kneser-Ney smoothing of a corpus that is small enough to be counted by hand, and of one that has every count.
#include <doctest/doctest.h>

#include <cmath>

#include "apps/lab/analysis/sample_metrics.h"
#include "tests/data/files.h"

using namespace ricci::apps;
using test_data::error_of;

namespace {

std::vector<int64_t> random_text(size_t tokens, int64_t vocab) {
  test_data::Sequence sequence(7);
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

TEST_CASE("Kneser-Ney: a longer history predicts a periodic text better") {
  std::vector<int64_t> text;
  for (int i = 0; i < 200; ++i)
    for (const int64_t id : {0, 0, 1, 0, 1, 1}) text.push_back(id);
  CHECK(KneserNey(text, 4, 2).nats_per_token(text, 3) < 0.5 * KneserNey(text, 2, 2).nats_per_token(text, 3));
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
