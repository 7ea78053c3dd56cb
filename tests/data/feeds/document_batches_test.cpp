// Whole documents as sequences: rows, labels and lengths, each document once per epoch, and going on from any place.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <tuple>

#include "data/feeds/feed.h"
#include "data/feeds/sequence_stream.h"
#include "data/shards/tokens.h"
#include "tests/data/shards/shard_files.h"

using namespace ricci;
using namespace test_data;

namespace {

constexpr int64_t kContext = 20;

// Document i is i + 1 letters under the label i % 5, in a folder of shards.
Tokens labelled(const ScratchFolder& folder, const std::string& name, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += std::to_string(i % 5) + "\t" + std::string(static_cast<size_t>(i + 1), static_cast<char>('a' + i % 26)) + "\n";
  make_folders(folder / name);
  const auto files = TextSource(folder.write(name + ".tsv", text));
  prepare_shards(files, ByteTokenizer(), Folder(folder / name),
      {.documents = {.format = DocumentFormat::tsv, .label_field = "1", .classes = 5}, .shard_tokens = 100});
  return ShardedTokens::open(folder / name, ByteTokenizer());
}

// A row of a batch: label, length, and the ids of the document alone.
using Row = std::tuple<int64_t, int64_t, std::vector<int64_t>>;
Row row_of(const Batch& batch, int64_t b) {
  const int64_t length = batch.lengths_b[static_cast<size_t>(b)];
  const auto start = batch.ids_bc.begin() + b * batch.context;
  CHECK(std::all_of(start + length, start + batch.context, [](int64_t id) { return id == 0; }));
  return {batch.labels_b[static_cast<size_t>(b)], length, {start, start + length}};
}

std::vector<Row> rows_of(const std::vector<Batch>& step) {
  std::vector<Row> all;
  for (const Batch& batch : step)
    for (int64_t b = 0; b < batch.batch; ++b) all.push_back(row_of(batch, b));
  return all;
}

}  // namespace

TEST_CASE("evaluation has every document once, in order, cut to the context") {
  const ScratchFolder folder;
  const Tokens a = labelled(folder, "a", 33), tokens = join({a, labelled(folder, "b", 7)});
  REQUIRE(a.shards() > 2);
  for (const int64_t size : {1, 6, 40, 100}) {
    const DocumentBatches batches(tokens, size, kContext);
    CHECK(batches.documents() == 40);
    std::vector<Row> rows;
    for (int64_t i = 0; i < batches.batches(); ++i) {
      const Batch batch = batches.at(i);
      CHECK(batch.scored == batch.batch);
      CHECK(batch.context == *std::max_element(batch.lengths_b.begin(), batch.lengths_b.end()));
      const auto more = rows_of({batch});
      rows.insert(rows.end(), more.begin(), more.end());
    }
    REQUIRE(rows.size() == 40);
    for (int i = 0; i < 40; ++i) {
      const int number = i < 33 ? i : i - 33;
      const int64_t length = std::min<int64_t>(number + 1, kContext);
      CHECK(rows[static_cast<size_t>(i)] == Row{number % 5, length, std::vector<int64_t>(static_cast<size_t>(length), 'a' + number % 26)});
    }
  }
}

TEST_CASE("a training takes every document once per epoch, in another order each time") {
  const ScratchFolder folder;
  const Tokens tokens = labelled(folder, "a", 40);
  SequenceStream stream({tokens}, {.context = kContext, .seed = 3, .shuffle_buffer = 16, .whole_documents = true});
  std::set<std::vector<Row>> orders;
  for (int epoch = 0; epoch < 2; ++epoch) {
    const std::vector<Row> rows = rows_of(stream.next_step(8, 5));
    orders.insert(rows);
  }
  CHECK(orders.size() == 2);
  // The buffer reaches over the end of an epoch, so 16 * 40 documents are 16 epochs, each document 16 times.
  SequenceStream many({tokens}, {.context = kContext, .seed = 3, .shuffle_buffer = 16, .whole_documents = true});
  std::map<Row, int> times;
  for (const Row& row : rows_of(many.next_step(16, 40))) ++times[row];
  CHECK(times.size() == 40);
  CHECK(std::all_of(times.begin(), times.end(), [](const auto& each) { return each.second == 16; }));
}

TEST_CASE("whole documents: any place can be gone to, a step can be shared, rows may be as wide as the context") {
  const ScratchFolder folder;
  const std::vector<Tokens> corpora{labelled(folder, "a", 40), labelled(folder, "b", 9)};
  const StreamOptions options{.context = kContext, .seed = 4, .shuffle_buffer = 8, .weights = {1, 2}, .whole_documents = true};
  SequenceStream whole(corpora, options);
  StreamOptions wide = options;
  wide.full_width = true;
  std::vector<SequenceStream> parts(2, SequenceStream(corpora, wide));
  for (int step = 0; step < 60; ++step) {
    SequenceStream resumed(corpora, options);
    if (step > 0) resumed.go_to(whole.place());
    const std::vector<Row> expected = rows_of(whole.next_step(2, 3));
    CHECK(rows_of(resumed.next_step(2, 3)) == expected);
    std::vector<Row> together;
    for (int64_t i = 0; i < 2; ++i) {
      const std::vector<Batch> part = parts[static_cast<size_t>(i)].next_step({i, i + 1}, 2, 3);
      CHECK(part[0].context == kContext);
      const auto rows = rows_of(part);
      together.insert(together.end(), rows.begin(), rows.end());
    }
    CHECK(together == expected);
  }
}

TEST_CASE("documents without labels") {
  const ScratchFolder folder;
  const Tokens plain = ShardedTokens::open(prepared(folder, "plain", "a\nb\n"), ByteTokenizer());
  CHECK(error_of([&] { DocumentBatches(plain, 1, 4); }) == "plain: has no labels");
  CHECK(error_of([&] { SequenceStream({plain}, {.context = 4, .whole_documents = true}); }) == "plain: has no labels");
  const Tokens tokens = labelled(folder, "a", 3);
  CHECK(error_of([&] { DocumentBatches(tokens, 0, 4); }) == "batches of documents: batch 0 and context 4, expected 1 or more of each");
  CHECK(error_of([&] { DocumentBatches(tokens, 2, 4).at(2); }) == "batches of documents: no batch 2 among 2");
}
