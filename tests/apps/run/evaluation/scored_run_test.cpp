// The lines that ricci-eval prints, and the units it counts in, computed by hand.
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "apps/run/evaluation/evaluation.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

// 12 tokens of 0.5 nats each are 6 nats.
ScoredRun scored(const char* run, int64_t words) {
  ScoredRun s{run, "a.txt", 16, 4, "", {}, TextSize{.bytes = 40, .words = words}};
  s.result.nats_per_token = 0.5, s.result.tokens = 12;
  return s;
}

}  // namespace

TEST_CASE("evaluation: bits per byte, and perplexity per word") {
  const ScoredRun s = scored("runs/a", 3);
  CHECK(s.result.bits_per_byte(40) == doctest::Approx(6 / 0.69314718055994531 / 40).epsilon(1e-14));
  CHECK(s.result.word_perplexity(3) == doctest::Approx(7.38905609893065).epsilon(1e-14));  // e^2
  CHECK(s.result.word_perplexity(12) == doctest::Approx(s.result.perplexity()).epsilon(1e-14));
}

TEST_CASE("a run that was scored: a line, a table, JSON") {
  ScoredRun a = scored("runs/a", 3), b = scored("runs/longer", 100);
  a.context_note = " (trained with 8)";
  CHECK(line_of(a) == "a.txt: 12 tokens, context 16 (trained with 8), stride 4: 0.5000 nats per token, perplexity 1.649, 0.2164 bits per "
                      "byte, word perplexity 7.39");
  b.result.tokens = 1200, b.text = "b.txt";
  ScoredRun sorter = a;
  sorter.stride = {};
  CHECK(line_of(sorter).starts_with("a.txt: 12 tokens, context 16 (trained with 8): 0.5000 nats"));
  CHECK(text_of(std::vector{sorter, a}).find("       16       -      0.5000") != std::string::npos);
  CHECK(json_of(std::vector{sorter}).find("stride") == std::string::npos);
  CHECK(text_of(std::vector{a, b}) == "run          tokens  context  stride  nats/token  perplexity  bits/byte  word perplexity  text\n"
                                      "runs/a           12       16       4      0.5000       1.649     0.2164             7.39  a.txt\n"
                                      "runs/longer   1,200       16       4      0.5000       1.649    21.6404           403.43  b.txt");
  a.result.nats_per_token = std::numeric_limits<double>::infinity();
  a.text = "bad \xff";
  CHECK(json_of(std::vector{a}) ==
        "[\n {\n  \"run\": \"runs/a\",\n  \"text\": \"bad \xef\xbf\xbd\",\n  \"tokens\": 12,\n  \"context\": 16,\n  \"stride\": 4,\n"
        "  \"nats_per_token\": null,\n  \"perplexity\": null,\n  \"bytes\": 40,\n  \"bits_per_byte\": null,\n  \"words\": 3,\n  "
        "\"word_perplexity\": null\n }\n]");
}

TEST_CASE("the scores of a classifier as JSON") {
  Confusion confusion(2);
  for (const auto& [target, predicted] : {std::pair{0, 0}, {0, 0}, {0, 1}, {1, 1}}) confusion.add(target, predicted);
  CHECK(json_of(Evaluation{.nats_per_token = 0.25, .confusion = confusion}) ==
        R"({"sequences":4,"nats_per_sequence":0.25,"accuracy":0.75,"macro_precision":0.75,"macro_recall":0.8333333333333333,)"
        R"("macro_f1":0.7333333333333334,"confusion":[[2,1],[0,1]]})");
}
