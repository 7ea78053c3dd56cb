// The rows of the sorter and their batches, against what they should be, and what is held out.
#include "data/feeds/sorter.h"

#include <algorithm>
#include <set>

#include "tests/ops/values.h"

using namespace ricci;

namespace {

constexpr int64_t kSymbols = 3, kLength = 11, kRow = 2 * kLength;
using Subset = SortingRows::Subset;

std::vector<int64_t> read(const SortingRows& rows, int64_t first, int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  rows.read(first, ids);
  return ids;
}

std::set<std::vector<int64_t>> sequences_of(const SortingRows& rows) {
  std::set<std::vector<int64_t>> all;
  for (int64_t first = 0; first < rows.size(); first += kRow) all.insert(read(rows, first, kLength));
  return all;
}

}  // namespace

TEST_CASE("sorter: a row is a sequence and its symbols in order") {
  const SortingRows rows(kSymbols, kLength, Subset::training, 50);
  CHECK(rows.size() == 50 * kRow);
  CHECK(rows.vocab_size() == kSymbols);
  const std::vector<int64_t> all = read(rows, 0, rows.size());
  for (int64_t first = 0; first < rows.size(); first += kRow) {
    std::vector<int64_t> row(all.begin() + first, all.begin() + first + kLength);
    CHECK(std::all_of(row.begin(), row.end(), [](int64_t symbol) { return symbol >= 0 && symbol < kSymbols; }));
    std::sort(row.begin(), row.end());
    CHECK(std::equal(row.begin(), row.end(), all.begin() + first + kLength));
  }
  for (const auto& [first, count] : {std::pair{0, 5}, {7, 40}, {21, 2}, {500, 1}, {1099, 1}})
    CHECK(read(rows, first, count) == std::vector<int64_t>(all.begin() + first, all.begin() + first + count));
}

TEST_CASE("sorter: training never sees what is held out") {
  const auto training = sequences_of({kSymbols, kLength, Subset::training, 3000}),
             held_out = sequences_of({kSymbols, kLength, Subset::held_out, 1000});
  CHECK(training.size() > 2900);
  CHECK(held_out.size() > 950);
  CHECK(std::none_of(held_out.begin(), held_out.end(), [&](const auto& sequence) { return training.contains(sequence); }));
  // With few sequences, training sees about seven eighths of them all.
  const auto few = sequences_of({2, kLength, Subset::training, 40'000}), others = sequences_of({2, kLength, Subset::held_out, 20'000});
  CHECK(few.size() + others.size() == 2048);
  CHECK(others.size() > 192);
  CHECK(others.size() < 320);
  CHECK(SortingRows(kSymbols, kLength, Subset::training, 9).hash() != SortingRows(kSymbols, kLength, Subset::held_out, 9).hash());
}

TEST_CASE("sorter: batches predict the sorted symbols alone") {
  const SortingRows rows(kSymbols, kLength, Subset::held_out, 7);
  const SortingBatches batches(rows, kLength, 3, 1);
  CHECK(batches.batches() == 3);
  CHECK(batches.context() == 21);
  int64_t row = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const Batch batch = batches.at(i);
    CHECK(batch.batch == (i < 2 ? 3 : 1));
    CHECK(batch.scored == batch.batch * kLength);
    for (int64_t b = 0; b < batch.batch; ++b, ++row) {
      const std::vector<int64_t> ids = read(rows, row * kRow, kRow);
      const auto begin = b * batch.context;
      CHECK(std::equal(ids.begin(), ids.end() - 1, batch.ids_bc.begin() + begin));
      CHECK(std::count(batch.targets_bc.begin() + begin, batch.targets_bc.begin() + begin + kLength - 1, kNoTarget) == kLength - 1);
      CHECK(std::equal(ids.begin() + kLength, ids.end(), batch.targets_bc.begin() + begin + kLength - 1));
    }
  }
}

TEST_CASE("sorter: micro-batches of a step are the rows of the whole step, and seeds and steps differ") {
  for (const int64_t count : {1000, 4}) {  // rows; a step may have more than there are
    const SortingRows rows(kSymbols, kLength, Subset::training, count);
    const SortingBatches halves(rows, kLength, 5, 7), whole(rows, kLength, 10, 7), other(rows, kLength, 5, 8);
    std::vector<int64_t> both = halves.at(3, 0).ids_bc;
    const Batch second = halves.at(3, 1);
    CHECK(second.batch == 5);
    both.insert(both.end(), second.ids_bc.begin(), second.ids_bc.end());
    CHECK(whole.at(3, 0).ids_bc == both);
    CHECK(halves.at(3, 0).ids_bc != halves.at(4, 0).ids_bc);
    CHECK(halves.at(3, 0).ids_bc != other.at(3, 0).ids_bc);
    CHECK(whole.batch() == std::min<int64_t>(10, count));
    CHECK(whole.at(0).batch == whole.batch());
  }
}

TEST_CASE("sorter: what cannot be is said") {
  const auto complaint = [](int64_t symbols, int64_t length, int64_t rows) {
    return message_of([&] { SortingRows(symbols, length, Subset::training, rows); });
  };
  CHECK(complaint(1, 11, 5) == "sorter: 1 symbols, expected 2 to 26");
  CHECK(complaint(27, 11, 5) == "sorter: 27 symbols, expected 2 to 26");
  CHECK(complaint(3, 2, 5) == "sorter: sequences of 2 symbols, expected 3 to 4096");
  CHECK(complaint(3, 6, 5) == "sorter: 3 symbols make 729 sequences of 6, expected 1024 or more");
  CHECK(complaint(3, 11, 0) == "sorter: 0 rows, expected 1 or more");
  const SortingRows rows(3, 11, Subset::training, 5);
  CHECK(
      message_of([&] { SortingBatches(rows, 10, 1, 1); }) == "sorter: sorter (training) has 110 tokens, which are no rows of two times 10");
  CHECK(message_of([&] { SortingBatches(rows, INT64_MAX, 1, 1); }).starts_with("sorter: sorter (training) has 110 tokens"));
  CHECK(message_of([&] { SortingBatches(rows, 11, 0, 1); }) == "sorter: sequences of 11 symbols and batch 0, expected 1 or more of each");
  CHECK(message_of([&] { SortingBatches(rows, 0, 1, 1); }) == "sorter: sequences of 0 symbols and batch 1, expected 1 or more of each");
  CHECK(message_of([&] { SortingBatches(rows, 11, 2, 1).at(3); }) == "sorter: batch 3, expected 0 to 2");
  CHECK(message_of([&] { SortingBatches(rows, 11, 2, 1).at(-1, 0); }) == "sorter: step -1 and micro-batch 0, expected 0 or more of each");
}
