// Training steps: ranks read each micro-batch of a step once and reach the same position; a resumed run reads the next steps;
// batch_invariant divides a step into its sequences.
#include "apps/run/batches.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "apps/run/config.h"
#include "tests/data/files.h"
#include "tests/data/ids.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

// Ids, targets or labels, and lengths of each micro-batch.
std::vector<std::vector<int64_t>> rows_of(const std::vector<Batch>& micro_batches) {
  std::vector<std::vector<int64_t>> all;
  for (const Batch& each : micro_batches)
    for (const Tensor& part : {each.ids_bc, each.targets, each.lengths_b}) all.push_back(numbers_of(part));
  return all;
}

struct Steps {
  std::vector<std::vector<int64_t>> rows;
  std::vector<std::string> places;
};

// From a step on, for one rank.
Steps read(const Corpus& corpus, const TrainConfig& config, Range mine, int64_t first = 0, const std::string& place = "") {
  const std::unique_ptr<Feed> feed = make_feed(corpus, config);
  feed->go_to(first, place);
  Steps steps;
  for (int64_t i = first; i < config.steps; ++i) {
    const auto [micro_batches, place] = read_step(*feed, config, mine);
    for (auto& row : rows_of(micro_batches)) steps.rows.push_back(std::move(row));
    steps.places.push_back(place);
  }
  return steps;
}

// The values of a range of micro-batches, with three per step.
std::vector<std::vector<int64_t>> part_of(const Steps& steps, Range mine) {
  std::vector<std::vector<int64_t>> some;
  for (size_t i = 0; i < steps.rows.size(); ++i)
    if (const auto micro_batch = static_cast<int64_t>(i / 3 % 3); mine.lo <= micro_batch && micro_batch < mine.hi)
      some.push_back(steps.rows[i]);
  return some;
}

}  // namespace

TEST_CASE("steps: ranks share them, a resumed training reads the next ones, and batch_invariant has the same sequences") {
  const ScratchFolder folder;
  const ScopedVariable cache("RICCI_CACHE", (folder / "cache").c_str());
  std::string text, labels, pairs;
  for (int i = 0; i < 200; ++i) {
    const std::string word(static_cast<size_t>(i % 7 + 1), static_cast<char>('a' + i % 5));
    text += word + "\n";
    labels += std::to_string(i % 2) + "\t" + word + "\n";
    pairs += R"({"prompt": ")" + word + R"(", "answer": "ab"})" + "\n";
  }
  folder.write("a.txt", text);
  folder.write("a.tsv", labels);
  folder.write("a.jsonl", pairs);
  const std::vector<std::vector<std::string>> kinds{{"data=" + folder / "a.txt"}, {"data=" + folder / "a.txt", "order=columns"},
      {"data=" + folder / "a.txt", "order=shuffled", "shuffle_buffer=5"}, {"data=" + folder / "a.jsonl", "format=pairs"},
      {"data=" + folder / "a.jsonl", "format=pairs", "pack=best"},
      {"data=" + folder / "a.tsv", "format=tsv", "label_field=1", "model.family=classifier", "model.classes=2"}};
  for (const std::vector<std::string>& kind : kinds) {
    CAPTURE(kind.back());
    std::vector<std::string> keys{"model.d=8", "model.layers=1", "model.heads=2", "model.ctx=8", "batch=2", "accumulation=3", "steps=6"};
    keys.insert(keys.end(), kind.begin(), kind.end());
    const auto config = load_config<TrainConfig>("", keys);
    const Corpus corpus = open_corpus(config);
    const Steps all = read(corpus, config, {0, 3});
    REQUIRE(all.rows.size() == 6 * 3 * 3);
    for (const Range mine : {Range{0, 1}, Range{1, 3}}) {
      const Steps part = read(corpus, config, mine);
      CHECK(part.rows == part_of(all, mine));
      CHECK(part.places == all.places);
    }
    const Steps later = read(corpus, config, {0, 3}, 4, all.places[3]);
    CHECK(later.rows == std::vector(all.rows.begin() + 4 * 3 * 3, all.rows.end()));
    CHECK(later.places == std::vector(all.places.begin() + 4, all.places.end()));

    keys.push_back("batch_invariant=true");
    const Steps single = read(corpus, load_config<TrainConfig>("", keys), {0, 6});
    REQUIRE(single.rows.size() == 6 * 6 * 3);
    CHECK(single.places == all.places);
    // A row is shorter if the other row of its micro-batch was longer.
    for (size_t i = 0; i < all.rows.size(); i += 3)
      for (size_t b = 0; b < 2; ++b) {
        const std::vector<int64_t>&row = single.rows[2 * i + 3 * b], &both = all.rows[i];
        CHECK(std::equal(row.begin(), row.end(), both.begin() + static_cast<int64_t>(b * both.size() / 2)));
      }
  }
}

TEST_CASE("documents with answers: a corpus keeps those that its context reaches, and evaluations read them") {
  const ScratchFolder folder;
  const ScopedVariable cache("RICCI_CACHE", (folder / "cache").c_str());
  std::string pairs;  // every second prompt is longer than the context
  for (int i = 0; i < 40; ++i) pairs += R"({"prompt": ")" + std::string(i % 2 ? 20 : 3, 'q') + R"(", "answer": "ab"})" + "\n";
  const auto config = load_config<TrainConfig>("", {"data=" + folder.write("a.jsonl", pairs), "format=pairs", "model.ctx=8", "batch=3"});
  const Corpus corpus = open_corpus(config);
  const Tokens& validation = corpus.validation.tokens;
  REQUIRE(validation.shards() == 1);
  CHECK(validation.documents(0) == 2);
  CHECK(corpus.train.documents(0) == 18);
  const EvaluationBatches batches = evaluation_batches(config, validation);
  CHECK(batches.has_answers());
  CHECK(batches.rows() == 2);
  CHECK(batches.at(0).scored == 2 * 3);  // answers and their ends
  // Tokens for a model with a longer context are not cut.
  CHECK(open_validation(config, corpus.tokenizer, 1000).tokens.documents(0) == 4);
}
