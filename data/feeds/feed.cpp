#include "data/feeds/feed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/random.h"

namespace ricci {
namespace {

void check(const char* what, const Tokens& tokens, int64_t batch, int64_t context) {
  if (batch < 1 || context < 1) fail("{}: batch {} and context {}, expected 1 or more of each", {what, batch, context});
  if (tokens.size() <= context)
    fail("{}: {} has {} tokens, but a context of {} needs {}",
        {what, tokens.name(), tokens.size(), context, std::to_string(static_cast<uint64_t>(context) + 1)});
}

// A batch without tokens: padding everywhere.
Batch padding(int64_t rows, int64_t context) {
  int64_t tokens = 0;
  if (__builtin_mul_overflow(rows, context, &tokens)) fail("batch {} of context {}: more tokens than 64 bits can count", {rows, context});
  const auto size = static_cast<size_t>(tokens);
  return {rows, context, std::vector<int64_t>(size, 0), std::vector<int64_t>(size, kNoTarget), 0};
}

// Row b gets the ids but the last one, and as targets the ids after them that count, of the positions from `from` on.
void write_row(Batch& batch, int64_t b, const Row& row, int64_t from = 0) {
  const int64_t first = b * batch.context, count = std::ssize(row.ids) - 1;
  std::copy_n(row.ids.begin(), count, batch.ids_bc.begin() + first);
  for (int64_t c = from; c < count; ++c) {
    const auto next = static_cast<size_t>(c + 1);
    if (!row.counts.empty() && !row.counts[next]) continue;
    batch.targets_bc[static_cast<size_t>(first + c)] = row.ids[next];
    ++batch.scored;
  }
}

// Row b gets the tokens from `first` on, before `end`. first + 1 < end.
void read_text(Batch& batch, int64_t b, const Tokens& tokens, int64_t first, int64_t end, int64_t from = 0) {
  const TokenSpan span{first, std::min(first + batch.context + 1, end)};
  write_row(batch, b, read_row(tokens, {&span, 1}), from);
}

}  // namespace

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

Batch predicting_batch(std::span<const Row> rows, int64_t width) {
  for (const Row& row : rows) width = std::max(width, std::ssize(row.ids) - 1);
  Batch batch = padding(std::ssize(rows), width);
  for (size_t b = 0; b < rows.size(); ++b) write_row(batch, static_cast<int64_t>(b), rows[b]);
  return batch;
}

RandomCrops::RandomCrops(Tokens tokens, int64_t batch, int64_t context, uint64_t seed, int64_t micro_batches)
    : tokens_(std::move(tokens)), batch_(batch), context_(context), seed_(seed), micro_batches_(micro_batches) {
  check("random crops", tokens_, batch, context);
}

Batch RandomCrops::at(int64_t step, int64_t micro_batch) const {
  if (step < 0 || micro_batch < 0) fail("random crops: step {} and micro-batch {}, expected 0 or more of each", {step, micro_batch});
  const Philox random{seed_, hash_bytes("random crops")};
  const int64_t starts = tokens_.size() - context_;
  Batch result = padding(batch_, context_);
  for (int64_t b = 0; b < batch_; ++b) {
    const uint64_t draw = static_cast<uint64_t>(step) << 32 | static_cast<uint64_t>(micro_batch * batch_ + b);
    const auto first = static_cast<int64_t>(index_below(static_cast<uint64_t>(starts), random, draw));
    read_text(result, b, tokens_, first, tokens_.size());
  }
  return result;
}

Batch RandomCrops::next() {
  Batch batch = at(number_ / micro_batches_, number_ % micro_batches_);
  ++number_;
  return batch;
}

ColumnBatches::ColumnBatches(Tokens tokens, int64_t columns, int64_t batch, int64_t context)
    : tokens_(std::move(tokens)), columns_(columns), batch_(batch), context_(context), length_(0) {
  check("column batches", tokens_, batch, context);
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
  Batch result = padding(batch_, context_);
  for (int64_t b = 0; b < batch_; ++b) {
    const int64_t start = (micro_batch * batch_ + b) * length_;
    read_text(result, b, tokens_, start + in_column, start + length_ + 1, scored - in_column);
  }
  return result;
}

Batch ColumnBatches::next() {
  Batch batch = at(number_ / (columns_ / batch_), number_ % (columns_ / batch_));
  ++number_;
  return batch;
}

Windows::Windows(Tokens tokens, int64_t batch, int64_t context, int64_t stride, int64_t from)
    : tokens_(std::move(tokens)), batch_(batch), context_(context), stride_(stride), from_(from), count_(0) {
  check("evaluation windows", tokens_, batch, context);
  if (stride < 1 || stride > context) fail("evaluation windows: stride {} is not between 1 and the context {}", {stride, context});
  if (from < 0 || from >= context)
    fail("evaluation windows: from position {} of a context of {}, expected 0 to {}", {from, context, context - 1});
  const int64_t after_first = tokens_.size() - 1 - context;  // targets that the first window leaves
  count_ = 1 + (after_first + stride - 1) / stride;
  batch_ = std::min(batch, count_);
}

Batch Windows::at(int64_t index) const {
  if (index < 0 || index >= batches()) fail("evaluation windows: no batch {} among {}", {index, batches()});
  const int64_t rows = std::min(batch_, count_ - index * batch_);
  Batch result = padding(rows, context_);
  for (int64_t b = 0; b < rows; ++b) {
    const int64_t window = index * batch_ + b;
    const int64_t position = window == 0 ? from_ : std::max(from_, context_ - stride_);  // the first that is scored
    read_text(result, b, tokens_, window * stride_, tokens_.size(), position);
  }
  return result;
}

}  // namespace ricci
