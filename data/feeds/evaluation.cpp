#include "data/feeds/evaluation.h"

#include <algorithm>

#include "core/error.h"

namespace ricci {

EvaluationBatches EvaluationBatches::windows(const Tokens& tokens, int64_t batch, int64_t context, int64_t stride, int64_t from) {
  check_text("evaluation windows", tokens, batch, context);
  if (stride < 1 || stride > context) fail("evaluation windows: stride {} is not between 1 and the context {}", {stride, context});
  if (from < 0 || from >= context)
    fail("evaluation windows: 'from' is {} with a context of {}, expected 0 to {}", {from, context, context - 1});
  const int64_t after_first = tokens.size() - 1 - context;  // targets after the first window
  return {tokens, 1 + (after_first + stride - 1) / stride, batch, context, stride, from};
}

EvaluationBatches EvaluationBatches::documents(const Tokens& tokens, int64_t batch, int64_t context) {
  if (batch < 1 || context < 1) fail("batches of documents: batch is {} and context is {}; both must be 1 or more", {batch, context});
  if (!tokens.has_mask()) check_labelled(tokens);
  return {tokens, tokens.documents(), batch, context};
}

Row EvaluationBatches::row(int64_t number) const {
  if (stride_ > 0) {
    const int64_t first = number * stride_;
    const int64_t position = number == 0 ? from_ : std::max(from_, context_ - stride_);  // the first scored position
    return {&tokens_, {{first, std::min(first + context_ + 1, tokens_.size())}}, -1, position};
  }
  int64_t shard = 0;
  for (; number >= tokens_.documents(shard); ++shard) number -= tokens_.documents(shard);
  TokenSpan document = tokens_.document(shard, number);
  if (!tokens_.has_mask()) document.end = std::min(document.end, document.first + context_);
  return {&tokens_, {document}, tokens_.label(shard, number)};
}

Batch EvaluationBatches::at(int64_t index) const {
  if (index < 0 || index >= batches()) fail("evaluation: batch {} does not exist; there are {} batches", {index, batches()});
  std::vector<Row> rows;
  for (int64_t number = index * batch_; number < std::min((index + 1) * batch_, rows_); ++number) rows.push_back(row(number));
  return read_batch(rows, stride_ > 0 ? context_ : 0);
}

void EvaluationBatches::keep_first(int64_t batches) { rows_ = std::min(rows_, std::min(batches, this->batches()) * batch_); }

void MaskedCounts::operator+=(const MaskedCounts& other) {
  all += other.all;
  cut += other.cut;
  left_out += other.left_out;
}

std::pair<Tokens, MaskedCounts> keep_masked(const Tokens& tokens, int64_t context) {
  if (!tokens.has_mask()) return {tokens, {}};
  if (context < 1) fail("documents with a mask: context is {}, expected 1 or more", {context});
  MaskedCounts counts;
  std::vector<TokenSpan> kept;
  for (int64_t shard = 0; shard < tokens.shards(); ++shard)
    for (int64_t i = 0; i < tokens.documents(shard); ++i) {
      TokenSpan span = tokens.document(shard, i);
      const bool is_long = span.size() > context + 1;
      if (is_long) span.end = span.first + context + 1;
      std::vector<uint8_t> mask(static_cast<size_t>(span.size()));
      tokens.read_counts(span.first, mask);
      const bool predicts = std::find(mask.begin() + 1, mask.end(), 1) != mask.end();
      counts.cut += predicts && is_long;
      counts.left_out += !predicts;
      if (predicts) kept.push_back(span);
    }
  if (kept.empty())
    fail("{}: no answer in its {} documents begins within a context of {} tokens", {tokens.name(), counts.left_out, context});
  counts.all = std::ssize(kept);
  return {tokens.select(std::move(kept)), counts};
}

void check_labelled(const Tokens& tokens) {
  if (tokens.size() == 0) fail("{}: has no tokens", {tokens.name()});
  if (tokens.classes() == 0) fail("{}: has no labels", {tokens.name()});
}

}  // namespace ricci
