// Whole documents, one in each row. A model learns the tokens that count in documents with a mask, and a classifier learns the labels of
// documents.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

struct MaskedCounts {
  int64_t all = 0;  // documents that are kept
  int64_t cut = 0, left_out = 0;
};

// Keeps the documents with a mask that teach a model with this context something, because a token that counts is predicted. Each is cut
// after the last token that can be predicted.
// Errors: no document is left; context below 1.
std::pair<Tokens, MaskedCounts> keep_masked(const Tokens& tokens, int64_t context);

// Rows under labels, in Batch::labels_b, with their lengths in lengths_b, as wide as the longest row, or `width` if that is more.
Batch labelled_batch(std::span<const Row> rows, int64_t width = 0);

// Error: the documents have no labels, or there are none.
void check_labelled(const Tokens& tokens);

// Evaluation: every document once, in their order, cut at the context. If the tokens have a mask, keep_masked() chooses the documents.
class DocumentBatches {
 public:
  // Errors: neither mask nor labels; keep_masked's; batch or context below 1.
  DocumentBatches(const Tokens& tokens, int64_t batch, int64_t context);
  int64_t documents() const { return before_.back(); }
  int64_t batches() const { return (documents() + batch_ - 1) / batch_; }
  int64_t batch() const { return batch_; }  // documents in each batch but the last: as asked, but no more than there are
  // The documents [index * batch, (index + 1) * batch); the last batch has fewer if there are fewer.
  Batch at(int64_t index) const;

 private:
  Tokens tokens_;
  int64_t batch_, context_;
  std::vector<int64_t> before_;  // documents before each shard, and of all
};

}  // namespace ricci
