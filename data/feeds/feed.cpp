// A batch depends only on the seed and on the number of the step, because otherwise a resumed run would read other batches than a run that
// was never interrupted. So no random generator is advanced from batch to batch: Philox turns the seed and the number of a row into the
// position where this row starts, in any order and on any rank.
#include "data/feeds/feed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/random.h"

namespace ricci {

Batch RandomCrops::at(int64_t step, int64_t micro_batch) const {
  if (step < 0 || micro_batch < 0) fail("random crops: step {} and micro-batch {}, expected 0 or more of each", {step, micro_batch});
  const Philox random{seed_, hash_bytes("random crops")};
  const auto starts = static_cast<uint64_t>(tokens_.size() - context_);  // a row has context + 1 tokens: the last one is only a target
  std::vector<Row> rows;
  for (int64_t b = 0; b < batch_; ++b) {
    const uint64_t number = static_cast<uint64_t>(step) << 32 | static_cast<uint64_t>(micro_batch * batch_ + b);
    const auto first = static_cast<int64_t>(index_below(starts, random, number));
    rows.push_back(read_row(tokens_, {first, first + context_ + 1}));
  }
  return predicting_batch(rows);
}

Batch RandomCrops::next() {
  Batch batch = at(number_ / micro_batches_, number_ % micro_batches_);
  ++number_;
  return batch;
}

RandomCrops::RandomCrops(Tokens tokens, int64_t batch, int64_t context, uint64_t seed, int64_t micro_batches)
    : tokens_(std::move(tokens)), batch_(batch), context_(context), seed_(seed), micro_batches_(micro_batches) {
  check_text("random crops", tokens_, batch, context);
}

// ---- Rows and batches
Row read_row(const Tokens& tokens, std::span<const TokenSpan> pieces, int64_t label) {
  Row row{{}, {}, label};
  for (const TokenSpan& piece : pieces) {
    const size_t before = row.ids.size();
    row.ids.resize(before + static_cast<size_t>(piece.size()));
    tokens.read(piece.first, std::span(row.ids).subspan(before));
    if (!tokens.has_mask()) continue;
    row.counts.resize(row.ids.size());
    tokens.read_counts(piece.first, std::span(row.counts).subspan(before));
  }
  if (const int64_t start = tokens.first_id(); start >= 0 && !tokens.has_mask())
    for (const int64_t id : row.ids) row.counts.push_back(id != start);
  return row;
}

Row read_row(const Tokens& tokens, const TokenSpan& piece, int64_t from) {
  Row row = read_row(tokens, {&piece, 1});
  row.from = from;
  return row;
}

Batch predicting_batch(std::span<const Row> rows, int64_t width) {
  for (const Row& row : rows) width = std::max(width, std::ssize(row.ids) - 1);
  const size_t size = rows.size() * static_cast<size_t>(width);
  Batch batch{std::ssize(rows), width, std::vector<int64_t>(size, 0), std::vector<int64_t>(size, kNoTarget)};
  int64_t first = 0;  // start of the row in the batch
  for (const Row& row : rows) {
    const int64_t count = std::ssize(row.ids) - 1;
    std::copy_n(row.ids.begin(), count, batch.ids_bc.begin() + first);
    for (int64_t c = row.from; c < count; ++c) {
      const auto next = static_cast<size_t>(c + 1);
      if (!row.counts.empty() && !row.counts[next]) continue;
      batch.targets_bc[static_cast<size_t>(first + c)] = row.ids[next];
      ++batch.scored;
    }
    first += width;
  }
  return batch;
}

Batch labelled_batch(std::span<const Row> rows, int64_t width) {
  for (const Row& row : rows) width = std::max(width, std::ssize(row.ids));
  Batch batch{std::ssize(rows), width, std::vector<int64_t>(rows.size() * static_cast<size_t>(width)), {}, std::ssize(rows)};
  auto first = batch.ids_bc.begin();
  for (const Row& row : rows) {
    std::copy(row.ids.begin(), row.ids.end(), first);
    batch.labels_b.push_back(row.label);
    batch.lengths_b.push_back(std::ssize(row.ids));
    first += width;
  }
  return batch;
}

void check_text(const char* what, const Tokens& tokens, int64_t batch, int64_t context) {
  if (batch < 1 || context < 1) fail("{}: batch {} and context {}, expected 1 or more of each", {what, batch, context});
  if (tokens.size() <= context)
    fail("{}: {} has {} tokens, but a context of {} needs {}",
        {what, tokens.name(), tokens.size(), context, std::to_string(static_cast<uint64_t>(context) + 1)});
}

// ---- Columns
ColumnBatches::ColumnBatches(Tokens tokens, int64_t columns, int64_t batch, int64_t context)
    : tokens_(std::move(tokens)), columns_(columns), batch_(batch), context_(context), length_(0) {
  check_text("column batches", tokens_, batch, context);
  if (columns < 1 || columns % batch != 0) fail("column batches: {} columns, expected a multiple of batch {}", {columns, batch});
  length_ = (tokens_.size() - 1) / columns;
  if (length_ < context)
    fail("column batches: {} has {} tokens, {} in each of {} columns, but the context is {}",
        {tokens_.name(), tokens_.size(), length_, columns, context});
}

Batch ColumnBatches::at(int64_t step, int64_t micro_batch) const {
  if (step < 0 || micro_batch < 0 || micro_batch >= columns_ / batch_)
    fail("column batches: step {} and micro-batch {}, expected 0 or more and 0 to {}", {step, micro_batch, columns_ / batch_ - 1});
  const int64_t scored = step % per_epoch() * context_;  // targets of a column in the windows before this one
  const int64_t in_column = std::min(scored, length_ - context_);
  std::vector<Row> rows;
  for (int64_t b = 0; b < batch_; ++b) {
    const int64_t first = (micro_batch * batch_ + b) * length_ + in_column;
    rows.push_back(read_row(tokens_, {first, first + context_ + 1}, scored - in_column));
  }
  return predicting_batch(rows);
}

Batch ColumnBatches::next() {
  Batch batch = at(number_ / (columns_ / batch_), number_ % (columns_ / batch_));
  ++number_;
  return batch;
}

}  // namespace ricci
