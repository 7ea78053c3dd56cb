// A batch depends only on the seed and the step number, so a resumed run reads the same batches. Ranks read different batches. Philox
// computes the start of a row from the seed and the row index; no generator advances from batch to batch.
#include "data/feeds/feed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/random.h"

namespace ricci {

Batch Feed::next() {
  std::vector<Row> rows;
  for (int64_t b = 0; b < batch_; ++b) rows.push_back(next_row());
  return read_batch(rows, width_);
}

void Feed::skip() {
  for (int64_t b = 0; b < batch_; ++b) next_row();
}

Row RandomCrops::next_row() {
  const Philox random{seed_, hash_bytes("random crops")};
  const auto starts = static_cast<uint64_t>(tokens_.size() - context_);  // a row has context + 1 tokens; the last is only a target
  const auto step = static_cast<uint64_t>(number_ / per_step_), row = static_cast<uint64_t>(number_ % per_step_);
  const auto first = static_cast<int64_t>(index_below(starts, random, step << 32 | row));
  ++number_;
  return {&tokens_, {{first, first + context_ + 1}}};
}

RandomCrops::RandomCrops(Tokens tokens, int64_t batch, int64_t context, uint64_t seed, int64_t micro_batches)
    : Feed(batch, context), tokens_(std::move(tokens)), context_(context), per_step_(batch * micro_batches), seed_(seed) {
  check_text("random crops", tokens_, batch, context);
}

// ---- Rows as a batch
namespace {

int64_t size_of(const Row& row) {
  int64_t tokens = 0;
  for (const TokenSpan& piece : row.pieces) tokens += piece.size();
  return tokens;
}

void read(const Row& row, std::span<int64_t> ids, std::span<uint8_t> counts) {
  size_t done = 0;
  for (const TokenSpan& piece : row.pieces) {
    const auto size = static_cast<size_t>(piece.size());
    row.tokens->read(piece.first, ids.subspan(done, size));
    row.tokens->read_counts(piece.first, counts.subspan(done, size));
    done += size;
  }
}

Tensor filled(const Shape& shape, int64_t value) {
  const Tensor t(shape, Dtype::i64);
  std::fill_n(t.data<int64_t>(), t.size(), value);
  return t;
}

}  // namespace

Batch read_batch(std::span<const Row> rows, int64_t width) {
  const bool is_labelled = rows[0].label >= 0;
  for (const Row& row : rows) width = std::max(width, size_of(row) - !is_labelled);  // without a label, the last token is only a target
  const int64_t count = std::ssize(rows);
  Batch batch{filled({count, width}, 0), filled(is_labelled ? Shape{count} : Shape{count, width}, kNoTarget)};
  if (is_labelled) batch.lengths_b = Tensor({count}, Dtype::i64);
  std::vector<int64_t> ids(static_cast<size_t>(width + 1));  // one row
  std::vector<uint8_t> counts(ids.size());
  for (int64_t b = 0; b < count; ++b) {
    const Row& row = rows[static_cast<size_t>(b)];
    const int64_t size = size_of(row);
    read(row, ids, counts);
    std::copy_n(ids.begin(), size - !is_labelled, batch.ids_bc.data<int64_t>() + b * width);
    if (is_labelled) {
      batch.targets.data<int64_t>()[b] = row.label;
      batch.lengths_b.data<int64_t>()[b] = size;
      ++batch.scored;
      continue;
    }
    const int64_t start = row.tokens->has_mask() ? kNoTarget : row.tokens->first_id();  // this id starts every document
    for (int64_t c = row.from; c + 1 < size; ++c) {
      const auto next = static_cast<size_t>(c + 1);
      if (!counts[next] || ids[next] == start) continue;
      batch.targets.data<int64_t>()[b * width + c] = ids[next];
      ++batch.scored;
    }
  }
  return batch;
}

void check_text(const char* what, const Tokens& tokens, int64_t batch, int64_t context) {
  if (batch < 1 || context < 1) fail("{}: batch is {} and context is {}; both must be 1 or more", {what, batch, context});
  if (tokens.size() <= context)
    fail("{}: {} has {} tokens, but a context of {} needs {}",
        {what, tokens.name(), tokens.size(), context, std::to_string(static_cast<uint64_t>(context) + 1)});
}

// ---- Columns
ColumnBatches::ColumnBatches(Tokens tokens, int64_t batch, int64_t context, int64_t micro_batches)
    : Feed(batch, context), tokens_(std::move(tokens)), context_(context), columns_(batch * micro_batches) {
  check_text("column batches", tokens_, batch, context);
  length_ = (tokens_.size() - 1) / columns_;
  if (length_ < context)
    fail("column batches: {} has {} tokens, {} in each of {} columns, fewer than the context of {}",
        {tokens_.name(), tokens_.size(), length_, columns_, context});
}

Row ColumnBatches::next_row() {
  const int64_t step = number_ / columns_, column = number_ % columns_;
  ++number_;
  const int64_t scored = step % per_epoch() * context_;  // targets of this column in earlier windows
  const int64_t in_column = std::min(scored, length_ - context_), first = column * length_ + in_column;
  return {&tokens_, {{first, first + context_ + 1}}, -1, scored - in_column};
}

}  // namespace ricci
