#include "data/feeds/document_batches.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace ricci {

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
