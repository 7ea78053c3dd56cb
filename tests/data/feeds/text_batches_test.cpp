// Batches of texts against their definitions, on texts with ids equal to their positions, over odd sizes; and the token that starts every
// document (Marks::first): the shards have it before each document, and it is never a target.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "core/files/checksum.h"
#include "core/random.h"
#include "data/feeds/evaluation.h"
#include "data/feeds/feed.h"
#include "data/feeds/sequence_stream.h"
#include "tests/data/feeds/corpora.h"
#include "tests/data/files.h"
#include "tests/data/ids.h"

using namespace ricci;
using namespace test_data;

namespace {

// The text 0, 1, 2, ... size - 1.
Tokens positions(int64_t size) {
  std::vector<int64_t> ids(static_cast<size_t>(size));
  std::iota(ids.begin(), ids.end(), 0);
  return tokens_of(ids, size);
}

int64_t at(const Tensor& values_bc, int64_t b, int64_t c) { return values_bc.data<int64_t>()[b * values_bc.shape()[1] + c]; }

// A micro-batch of a step.
Batch micro_batch(Feed& feed, int64_t step, int64_t number = 0) {
  feed.go_to(step, "");
  for (; number > 0; --number) feed.skip();
  return feed.next();
}

void check_extents(const Batch& batch, int64_t rows, int64_t context) {
  CHECK(batch.ids_bc.shape() == Shape{rows, context});
  CHECK(batch.targets.shape() == Shape{rows, context});
  const std::vector<int64_t> targets = numbers_of(batch.targets);
  CHECK(batch.scored == rows * context - std::count(targets.begin(), targets.end(), kNoTarget));
}

// The micro-batches of a step have the rows of one larger batch.
void check_micro_batches(Feed& whole, Feed& divided, int64_t step, int64_t parts) {
  const Batch all = micro_batch(whole, step);
  std::vector<int64_t> ids, targets;
  int64_t scored = 0;
  for (int64_t i = 0; i < parts; ++i) {
    const Batch one = micro_batch(divided, step, i);
    for (const int64_t id : numbers_of(one.ids_bc)) ids.push_back(id);
    for (const int64_t target : numbers_of(one.targets)) targets.push_back(target);
    scored += one.scored;
  }
  CHECK(ids == numbers_of(all.ids_bc));
  CHECK(targets == numbers_of(all.targets));
  CHECK(scored == all.scored);
}

void check_counts(const Batch& batch) {
  const std::vector<int64_t> ids = numbers_of(batch.ids_bc), targets = numbers_of(batch.targets);
  const auto count = [&](int64_t id) { return std::count(targets.begin(), targets.end(), id); };
  CHECK(count(2) == 0);
  CHECK(count(kNoTarget) > 0);
  CHECK(batch.scored == std::ssize(targets) - count(kNoTarget));
  CHECK(std::count(ids.begin(), ids.end(), 2) > 0);
}

}  // namespace

TEST_CASE("random crops: consecutive tokens, targets one ahead, every start equally likely") {
  const int64_t size = 17, context = 7, starts = size - context, batch = 5;
  RandomCrops crops(positions(size), batch, context, 42);
  std::vector<int64_t> drawn(static_cast<size_t>(starts));
  int64_t wrong = 0;
  for (int64_t step = 0; step < 2000; ++step) {
    const Batch result = crops.next();
    if (step == 0) check_extents(result, batch, context);
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t start = at(result.ids_bc, b, 0);
      REQUIRE(start < starts);
      ++drawn[static_cast<size_t>(start)];
      for (int64_t c = 0; c < context; ++c) {
        wrong += at(result.ids_bc, b, c) != start + c;
        wrong += at(result.targets, b, c) != start + c + 1;
      }
    }
    wrong += result.scored != batch * context;
  }
  CHECK(wrong == 0);
  for (const int64_t count : drawn) CHECK(std::abs(count - 1000) < 150);  // mean 1000, standard deviation 30
}

TEST_CASE("random crops: a function of only seed, step and row") {
  const Tokens tokens = positions(100'000);
  RandomCrops crops(tokens, 12, 3, 7), resumed(tokens, 12, 3, 7), other_seed(tokens, 12, 3, 8), small(tokens, 4, 3, 7, 3);
  micro_batch(crops, 3);
  micro_batch(crops, 900);
  const Batch whole = micro_batch(crops, 5);
  const std::vector<int64_t> ids = numbers_of(whole.ids_bc);
  CHECK(ids == numbers_of(micro_batch(resumed, 5).ids_bc));
  CHECK(ids != numbers_of(crops.next().ids_bc));
  CHECK(ids != numbers_of(micro_batch(other_seed, 5).ids_bc));
  check_micro_batches(crops, small, 5, 3);
  std::set<int64_t> starts;
  crops.go_to(0, "");
  for (int64_t step = 0; step < 100; ++step) {
    const Batch batch = crops.next();
    for (int64_t b = 0; b < 12; ++b) starts.insert(at(batch.ids_bc, b, 0));
  }
  CHECK(starts.size() > 1150);  // 1200 samples out of 100,000 positions: 7 repeats are expected
}

TEST_CASE("random crops: the numbers behind them") {
  RandomCrops crops(positions(1000), 4, 10, 77, 3);
  const Batch batch = micro_batch(crops, 9, 2);
  const Philox random{77, hash_bytes("random crops")};
  for (int64_t b = 0; b < 4; ++b)
    CHECK(at(batch.ids_bc, b, 0) == static_cast<int64_t>(index_below(990, random, uint64_t{9} << 32 | static_cast<uint64_t>(2 * 4 + b))));
}

TEST_CASE("random crops: the shortest text, and errors with both numbers") {
  const Batch only = RandomCrops(positions(6), 2, 5, 1).next();
  CHECK(numbers_of(only.ids_bc) == std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
  CHECK(numbers_of(only.targets) == std::vector<int64_t>{1, 2, 3, 4, 5, 1, 2, 3, 4, 5});
  CHECK(error_of([] { RandomCrops(positions(5), 2, 5, 1); }) == "random crops: ids has 5 tokens, but a context of 5 needs 6");
  CHECK(error_of([] { RandomCrops(positions(5), 0, 5, 1); }) == "random crops: batch is 0 and context is 5; both must be 1 or more");
  CHECK(error_of([] { RandomCrops(positions(5), 3, 0, 1); }) == "random crops: batch is 3 and context is 0; both must be 1 or more");
}

TEST_CASE("column batches: columns of equal length in consecutive windows") {
  const int64_t cases[][3] = {{41, 4, 5}, {42, 4, 5}, {44, 4, 5}, {45, 4, 5}, {2, 1, 1}, {101, 1, 7}, {101, 20, 5}, {97, 3, 32}};
  for (const auto& [each_size, each_rows, each_context] : cases) {
    const auto &size = each_size, &rows = each_rows, &context = each_context;
    CAPTURE(size);
    CAPTURE(rows);
    CAPTURE(context);
    ColumnBatches batches(positions(size), rows, context);
    const int64_t length = (size - 1) / rows;
    int64_t wrong = 0, scored = 0;
    for (int64_t window = 0; window < batches.per_epoch(); ++window) {
      const Batch batch = batches.next();
      check_extents(batch, rows, context);
      scored += batch.scored;
      for (int64_t b = 0; b < rows; ++b)
        for (int64_t c = 0; c < context; ++c) {
          const int64_t in_column = std::min(window * context, length - context) + c;
          const int64_t token = b * length + in_column;
          wrong += at(batch.ids_bc, b, c) != token;
          wrong += at(batch.targets, b, c) != (in_column >= window * context ? token + 1 : kNoTarget);
        }
    }
    CHECK(wrong == 0);
    CHECK(scored == rows * length);
    CHECK(numbers_of(micro_batch(batches, 3 * batches.per_epoch()).ids_bc) == numbers_of(micro_batch(batches, 0).ids_bc));
  }
}

TEST_CASE("column batches: the micro-batches of a step have the rows of one larger batch") {
  ColumnBatches whole(positions(97), 6, 5), divided(positions(97), 2, 5, 3);
  for (int64_t step = 0; step < 2 * whole.per_epoch(); ++step) check_micro_batches(whole, divided, step, 3);
}

TEST_CASE("column batches: errors with all numbers") {
  CHECK(error_of([] { ColumnBatches(positions(100), 20, 5); }) ==
        "column batches: ids has 100 tokens, 4 in each of 20 columns, fewer than the context of 5");
  CHECK(error_of([] { ColumnBatches(positions(5), 1, 5); }) == "column batches: ids has 5 tokens, but a context of 5 needs 6");
}

TEST_CASE("windows: every token but the first is scored once, with the context that the stride allows") {
  for (const int64_t size : {9, 10, 16, 17, 18, 25, 66}) {
    const Tokens tokens = positions(size);
    for (const int64_t context : {1, 2, 8})
      for (int64_t stride = 1; stride <= context; ++stride)
        for (const int64_t rows : {1, 3, 100}) {
          const EvaluationBatches windows = EvaluationBatches::windows(tokens, rows, context, stride);
          std::vector<int64_t> times(static_cast<size_t>(size));
          int64_t wrong = 0, seen = 0, scored = 0;
          for (int64_t index = 0; index < windows.batches(); ++index) {
            const Batch batch = windows.at(index);
            wrong += batch.ids_bc.shape()[0] != (index + 1 < windows.batches() ? rows : windows.rows() - index * rows);
            scored += batch.scored;
            for (int64_t b = 0; b < batch.ids_bc.shape()[0]; ++b, ++seen)
              for (int64_t c = 0; c < context; ++c) {
                const int64_t place = seen * stride + c, target = at(batch.targets, b, c);
                wrong += at(batch.ids_bc, b, c) != (place < size - 1 ? place : 0);  // the last token is only a target
                if (target == kNoTarget) continue;
                wrong += target != place + 1;
                wrong += c + 1 < std::min(target, context - stride + 1);  // tokens before the target
                ++times[static_cast<size_t>(target)];
              }
          }
          wrong += seen != windows.rows() || scored != size - 1;
          wrong += times[0] != 0 || std::count(times.begin(), times.end(), 1) != size - 1;
          if (wrong) FAIL("size " << size << " context " << context << " stride " << stride << " rows " << rows);
        }
  }
}

TEST_CASE("windows: positions in front of the first that is scored have no target") {
  for (const int64_t size : {9, 10, 18}) {
    const Tokens tokens = positions(size);
    for (const int64_t context : {1, 7})
      for (int64_t stride = 1; stride <= context; ++stride)
        for (int64_t from = 0; from < context; ++from) {
          const auto all = EvaluationBatches::windows(tokens, 3, context, stride);
          const auto later = EvaluationBatches::windows(tokens, 3, context, stride, from);
          int64_t wrong = all.batches() != later.batches();
          for (int64_t index = 0; index < all.batches(); ++index) {
            const Batch whole = all.at(index), part = later.at(index);
            int64_t scored = 0;
            for (int64_t b = 0; b < whole.ids_bc.shape()[0]; ++b)
              for (int64_t c = 0; c < context; ++c) {
                const int64_t expected = c < from ? kNoTarget : at(whole.targets, b, c);
                wrong += at(part.targets, b, c) != expected;
                scored += expected != kNoTarget;
              }
            wrong += part.scored != scored || numbers_of(part.ids_bc) != numbers_of(whole.ids_bc);
          }
          if (wrong) FAIL("size " << size << " context " << context << " stride " << stride << " from " << from);
        }
  }
  // The last window has one target, at its position 0, and scores none.
  const Batch last = EvaluationBatches::windows(positions(10), 1, 4, 4, 2).at(2);
  CHECK(numbers_of(last.ids_bc) == std::vector<int64_t>{8, 0, 0, 0});
  CHECK(numbers_of(last.targets) == std::vector<int64_t>{-1, -1, -1, -1});
  CHECK(last.scored == 0);
}

TEST_CASE("windows: errors with both numbers") {
  CHECK(error_of([] { EvaluationBatches::windows(positions(8), 2, 8, 4); }) ==
        "evaluation windows: ids has 8 tokens, but a context of 8 needs 9");
  CHECK(error_of([] { EvaluationBatches::windows(positions(20), 2, 8, 9); }) ==
        "evaluation windows: stride 9 is not between 1 and the context 8");
  CHECK(error_of([] { EvaluationBatches::windows(positions(20), 2, 8, 0); }) ==
        "evaluation windows: stride 0 is not between 1 and the context 8");
  CHECK(error_of([] { EvaluationBatches::windows(positions(20), 2, 8, 8).at(2); }) ==
        "evaluation: batch 2 does not exist; there are 2 batches");
  for (const int64_t from : {-1, 8})
    CHECK(error_of([&] { EvaluationBatches::windows(positions(20), 2, 8, 8, from); }) ==
          "evaluation windows: 'from' is " + std::to_string(from) + " with a context of 8, expected 0 to 7");
}

TEST_CASE("batches: sizes at the end of the range of 64 bits are errors or as many as there are") {
  std::vector<int64_t> ids(40, 1);
  const Tokens tokens = tokens_of(ids, 5);
  const EvaluationBatches all = EvaluationBatches::windows(tokens, INT64_MAX, 4, 4);
  CHECK(all.batches() == 1);
  CHECK(all.batch() == all.rows());
  CHECK(all.at(0).ids_bc.shape()[0] == all.rows());
  CHECK(EvaluationBatches::windows(tokens, 3, 4, 4).batch() == 3);
  CHECK(error_of([&] { EvaluationBatches::windows(tokens, 1, INT64_MAX, 1); }) ==
        "evaluation windows: ids has 40 tokens, but a context of 9223372036854775807 needs 9223372036854775808");
  CHECK(contains(error_of([&] { RandomCrops(tokens, 1, INT64_MAX, 1); }), "a context of 9223372036854775807 needs 9223372036854775808"));
}

TEST_CASE("first token: it starts every document, and is not a target of crops, columns, windows and streams") {
  const ScratchFolder folder;
  const Tokens tokens =
      records(folder, "a", "{\"text\":\"ab\"}\n{\"text\":\"b\"}\n{\"text\":\"aab\"}\n", {.format = format_of(kJsonl)}, starting());
  CHECK(read_all(tokens) == std::vector<int64_t>{2, 0, 1, 2, 1, 2, 0, 0, 1});
  CHECK(tokens.first_id() == 2);

  check_counts(EvaluationBatches::windows(tokens, 2, 4, 4).at(0));
  check_counts(ColumnBatches(tokens, 2, 4).next());
  check_counts(RandomCrops(tokens, 3, 6, 1).next());
  for (const RowKind rows : {RowKind::cut, RowKind::packed})
    check_counts(SequenceStream({tokens}, {.context = 6, .batch = 2, .seed = 1, .shuffle_buffer = 1, .rows = rows}).next());
  // All tokens of the text but the first are targets.
  const EvaluationBatches windows = EvaluationBatches::windows(tokens, 1, 4, 4);
  CHECK(numbers_of(windows.at(0).targets) == std::vector<int64_t>{0, 1, kNoTarget, 1});
  CHECK(numbers_of(windows.at(1).targets) == std::vector<int64_t>{kNoTarget, 0, 0, 1});
}

TEST_CASE("first token: one text is one document, of however many pieces") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 270'000; ++i) text += "ab"[i % 2];
  const std::string path = prepare(folder, "a", {.files = TextSource(folder.write("a.txt", text))}, starting());
  const std::vector<int64_t> ids = read_all(Tokens::open(path, *starting()));
  CHECK(ids.size() == 270'001);
  CHECK(ids[0] == 2);
  CHECK(std::count(ids.begin(), ids.end(), 2) == 1);
}
