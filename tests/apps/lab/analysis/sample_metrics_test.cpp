// Repeated n-grams and BLEU of texts that were counted by hand.
#include "apps/lab/analysis/sample_metrics.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace ricci::apps;

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
  // Precisions 5/6, 4/5, 3/4, 2/3, whose product is 1/3; the reference is as long.
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
