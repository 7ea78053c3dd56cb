// Which tokens make a batch.
#include "data/batches.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/random.h"
#include "data/hash.h"

namespace ricci {

namespace {

void check(const char* what, const TokenFile& tokens, int64_t batch, int64_t context) {
  if (batch < 1 || context < 1)
    fail("{}: batch {} and context {}, expected 1 or more of each", {what, batch, context});
  if (tokens.size() < context + 1)
    fail("{}: {} has {} tokens, but a context of {} needs {}", {what, tokens.name(), tokens.size(), context, context + 1});
}

// A row of a batch: context ids from `first` on, of whose targets those in front of text position `end` and not in
// front of `scored_from` count.
struct Row {
  int64_t first;
  int64_t scored_from;
  int64_t end;
};

void append(Batch& batch, const TokenFile& tokens, Row row) {
  const int64_t inside = std::min(batch.context, row.end - 1 - row.first);  // positions that have a target in the text
  std::vector<int64_t> text(static_cast<size_t>(inside + 1));
  tokens.read(row.first, text);
  for (int64_t c = 0; c < batch.context; ++c) {
    const bool counts = c < inside && row.first + c + 1 >= row.scored_from;
    batch.ids_bc.push_back(c <= inside ? text[static_cast<size_t>(c)] : 0);
    batch.targets_bc.push_back(counts ? text[static_cast<size_t>(c + 1)] : kNoTarget);
    batch.scored += counts;
  }
  ++batch.batch;
}

Batch empty_batch(int64_t rows, int64_t context) {
  Batch batch;
  batch.context = context;
  batch.ids_bc.reserve(static_cast<size_t>(rows * context));
  batch.targets_bc.reserve(static_cast<size_t>(rows * context));
  return batch;
}

}  // namespace

RandomCrops::RandomCrops(TokenFile tokens, int64_t batch, int64_t context, uint64_t seed)
    : tokens_(std::move(tokens)), batch_(batch), context_(context), seed_(seed) {
  check("random crops", tokens_, batch, context);
}

Batch RandomCrops::at(int64_t step, int64_t part) const {
  if (step < 0 || part < 0) fail("random crops: step {} and part {}, expected 0 or more of each", {step, part});
  const Philox random{seed_, hash_bytes("random crops")};
  const int64_t starts = tokens_.size() - context_;
  Batch result = empty_batch(batch_, context_);
  for (int64_t row = part * batch_; row < (part + 1) * batch_; ++row) {
    const uint64_t draw = static_cast<uint64_t>(step) << 32 | static_cast<uint64_t>(row);
    const auto first = static_cast<int64_t>(index_below(random, draw, static_cast<uint64_t>(starts)));
    append(result, tokens_, {first, 0, tokens_.size()});
  }
  return result;
}

ColumnBatches::ColumnBatches(TokenFile tokens, int64_t batch, int64_t context)
    : tokens_(std::move(tokens)), batch_(batch), context_(context), column_(0) {
  check("column batches", tokens_, batch, context);
  column_ = (tokens_.size() - 1) / batch;
  if (column_ < context)
    fail("column batches: {} has {} tokens, {} in each of {} columns, but the context is {}",
         {tokens_.name(), tokens_.size(), column_, batch, context});
}

Batch ColumnBatches::at(int64_t position) const {
  if (position < 0) fail("column batches: position {} is negative", {position});
  const int64_t window = position % per_epoch();
  Batch result = empty_batch(batch_, context_);
  for (int64_t b = 0; b < batch_; ++b) {
    const int64_t start = b * column_;
    append(result, tokens_, {start + window * context_, 0, start + column_ + 1});
  }
  return result;
}

Windows::Windows(TokenFile tokens, int64_t batch, int64_t context, int64_t stride)
    : tokens_(std::move(tokens)), batch_(batch), context_(context), stride_(stride), count_(0) {
  check("evaluation windows", tokens_, batch, context);
  if (stride < 1 || stride > context)
    fail("evaluation windows: stride {} is not between 1 and the context {}", {stride, context});
  const int64_t after_first = tokens_.size() - 1 - context;  // targets that the first window leaves
  count_ = 1 + (after_first + stride - 1) / stride;
}

Batch Windows::at(int64_t index) const {
  if (index < 0 || index >= batches()) fail("evaluation windows: no batch {} among {}", {index, batches()});
  const int64_t end = std::min(count_, (index + 1) * batch_);
  Batch result = empty_batch(batch_, context_);
  for (int64_t window = index * batch_; window < end; ++window) {
    const int64_t first = window * stride_;
    const int64_t scored_from = window == 0 ? 0 : first + context_ - stride_ + 1;
    append(result, tokens_, {first, scored_from, tokens_.size()});
  }
  return result;
}

}  // namespace ricci
