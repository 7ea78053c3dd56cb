// Batches whose sequences are whole documents under a label: what a classifier learns from and is evaluated on.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

struct LabelledIds {
  std::vector<int64_t> ids;
  int64_t label = -1;
};

// One row per document, in Batch::labels_b its label and in lengths_b its length; behind the document the row is filled with 0.
// The rows are as long as the longest document, or `width` where that is more.
Batch batch_of(std::span<const LabelledIds> documents, int64_t width = 0);

// The tokens of one document, of which those behind the first `context` are left out.
LabelledIds read_document(const Tokens& tokens, const TokenSpan& document, int64_t label, int64_t context);

// Error: the documents have no labels, or there are none.
void check_labelled(const Tokens& tokens);

// Evaluation: every document once, in their order.
class DocumentBatches {
 public:
  // Errors: no labels; batch or context below 1.
  DocumentBatches(Tokens tokens, int64_t batch, int64_t context);
  int64_t documents() const { return before_.back(); }
  int64_t batches() const { return (documents() + batch_ - 1) / batch_; }
  int64_t batch() const { return batch_; }  // documents in each batch but the last: as asked, but no more than there are
  // The documents [index * batch, (index + 1) * batch); the last batch has fewer if there are fewer.
  Batch at(int64_t index) const;

 private:
  Tokens tokens_;
  int64_t batch_, context_;
  std::vector<int64_t> before_;  // documents in front of each shard, and of all
};

}  // namespace ricci
