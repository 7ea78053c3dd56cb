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

// Row b gets the tokens from `first` on, before `end`, and their followers from `scored_from` on as targets, which
// may be none. first + 1 < end.
void fill_row(Batch& batch, int64_t b, const Tokens& tokens, int64_t first, int64_t scored_from, int64_t end) {
  const int64_t targets = std::min(batch.context, end - 1 - first);  // positions whose follower is before end
  const int64_t skipped = std::clamp<int64_t>(scored_from - first - 1, 0, targets);
  std::vector<int64_t> text(static_cast<size_t>(targets + 1));
  tokens.read(first, text);
  const int64_t row = b * batch.context;
  std::copy_n(text.begin(), std::min(targets + 1, batch.context), batch.ids_bc.begin() + row);
  std::copy(text.begin() + skipped + 1, text.end(), batch.targets_bc.begin() + row + skipped);
  batch.scored += targets - skipped;
  leave_out(tokens.first_id(), batch, std::span(batch.targets_bc).subspan(static_cast<size_t>(row), static_cast<size_t>(targets)));
}

}  // namespace

void leave_out(int64_t id, Batch& batch, std::span<int64_t> targets) {
  if (id < 0) return;
  batch.scored -= std::count(targets.begin(), targets.end(), id);
  std::replace(targets.begin(), targets.end(), id, kNoTarget);
}

RandomCrops::RandomCrops(Tokens tokens, int64_t batch, int64_t context, uint64_t seed)
    : tokens_(std::move(tokens)), batch_(batch), context_(context), seed_(seed) {
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
    fill_row(result, b, tokens_, first, 0, tokens_.size());
  }
  return result;
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
    fill_row(result, b, tokens_, start + in_column, start + scored + 1, start + length_ + 1);
  }
  return result;
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
    const int64_t first = window * stride_;
    const int64_t position = window == 0 ? from_ : std::max(from_, context_ - stride_);  // the first that is scored
    fill_row(result, b, tokens_, first, first + position + 1, tokens_.size());
  }
  return result;
}

Batch batch_of(std::span<const LabelledIds> documents, int64_t width) {
  for (const LabelledIds& document : documents) width = std::max(width, static_cast<int64_t>(document.ids.size()));
  const auto rows = static_cast<int64_t>(documents.size());
  Batch batch{rows, width, std::vector<int64_t>(static_cast<size_t>(rows * width)), {}, rows};
  for (size_t b = 0; b < documents.size(); ++b) {
    std::copy(documents[b].ids.begin(), documents[b].ids.end(), batch.ids_bc.begin() + static_cast<int64_t>(b) * width);
    batch.labels_b.push_back(documents[b].label);
    batch.lengths_b.push_back(static_cast<int64_t>(documents[b].ids.size()));
  }
  return batch;
}

LabelledIds read_document(const Tokens& tokens, const TokenSpan& document, int64_t label, int64_t context) {
  LabelledIds read{std::vector<int64_t>(static_cast<size_t>(std::min(document.size(), context))), label};
  tokens.read(document.first, read.ids);
  return read;
}

void check_labelled(const Tokens& tokens) {
  if (tokens.size() == 0) fail("{}: has no tokens", {tokens.name()});
  if (tokens.classes() == 0) fail("{}: has no labels", {tokens.name()});
}

DocumentBatches::DocumentBatches(Tokens tokens, int64_t batch, int64_t context)
    : tokens_(std::move(tokens)), batch_(batch), context_(context), before_{0} {
  if (batch < 1 || context < 1) fail("batches of documents: batch {} and context {}, expected 1 or more of each", {batch, context});
  check_labelled(tokens_);
  for (int64_t shard = 0; shard < tokens_.shards(); ++shard) before_.push_back(before_.back() + tokens_.documents(shard));
  batch_ = std::min(batch, documents());
}

Batch DocumentBatches::at(int64_t index) const {
  if (index < 0 || index >= batches()) fail("batches of documents: no batch {} among {}", {index, batches()});
  std::vector<LabelledIds> rows;
  for (int64_t number = index * batch_; number < std::min((index + 1) * batch_, documents()); ++number) {
    const int64_t shard = std::upper_bound(before_.begin(), before_.end(), number) - before_.begin() - 1;
    const int64_t document = number - before_[static_cast<size_t>(shard)];
    rows.push_back(read_document(tokens_, tokens_.document(shard, document), tokens_.label(shard, document), context_));
  }
  return batch_of(rows);
}

}  // namespace ricci
