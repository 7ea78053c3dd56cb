#include "data/feeds/documents.h"

#include <algorithm>

#include "core/error.h"

namespace ricci {

std::pair<Tokens, MaskedCounts> keep_masked(const Tokens& tokens, int64_t context) {
  if (context < 1) fail("documents with a mask: context {}, expected 1 or more", {context});
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
    fail("{}: no answer of its {} documents begins within a context of {} tokens", {tokens.name(), counts.left_out, context});
  counts.all = std::ssize(kept);
  return {tokens.only(std::move(kept)), counts};
}

Batch labelled_batch(std::span<const Row> rows, int64_t width) {
  for (const Row& row : rows) width = std::max(width, std::ssize(row.ids));
  const auto count = std::ssize(rows);
  Batch batch{count, width, std::vector<int64_t>(static_cast<size_t>(count * width)), {}, count};
  for (int64_t b = 0; b < count; ++b) {
    const Row& row = rows[static_cast<size_t>(b)];
    std::copy(row.ids.begin(), row.ids.end(), batch.ids_bc.begin() + b * width);
    batch.labels_b.push_back(row.label);
    batch.lengths_b.push_back(std::ssize(row.ids));
  }
  return batch;
}

void check_labelled(const Tokens& tokens) {
  if (tokens.size() == 0) fail("{}: has no tokens", {tokens.name()});
  if (tokens.classes() == 0) fail("{}: has no labels", {tokens.name()});
}

DocumentBatches::DocumentBatches(const Tokens& tokens, int64_t batch, int64_t context)
    : tokens_(tokens.has_mask() ? keep_masked(tokens, context).first : tokens), batch_(batch), context_(context), before_{0} {
  if (batch < 1 || context < 1) fail("batches of documents: batch {} and context {}, expected 1 or more of each", {batch, context});
  if (!tokens_.has_mask()) check_labelled(tokens_);
  for (int64_t shard = 0; shard < tokens_.shards(); ++shard) before_.push_back(before_.back() + tokens_.documents(shard));
  batch_ = std::min(batch, documents());
}

Batch DocumentBatches::at(int64_t index) const {
  if (index < 0 || index >= batches()) fail("batches of documents: no batch {} among {}", {index, batches()});
  std::vector<Row> rows;
  for (int64_t number = index * batch_; number < std::min((index + 1) * batch_, documents()); ++number) {
    const int64_t shard = std::upper_bound(before_.begin(), before_.end(), number) - before_.begin() - 1;
    const int64_t document = number - before_[static_cast<size_t>(shard)];
    TokenSpan span = tokens_.document(shard, document);
    if (!tokens_.has_mask()) span.end = std::min(span.end, span.first + context_);
    rows.push_back(read_row(tokens_, {&span, 1}, tokens_.label(shard, document)));
  }
  return tokens_.has_mask() ? predicting_batch(rows) : labelled_batch(rows);
}

}  // namespace ricci
