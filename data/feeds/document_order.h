// The documents of a corpus in an endless random order. The order is computed, not stored, so there can be more documents than fit into
// memory.
#pragma once
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "data/shards/tokens.h"

namespace ricci {

// A position in the order: the epoch, the ranks of the shard and of its document, and the number of tokens already taken from the document.
struct StreamPlace {
  int64_t epoch = 0, shard = 0, document = 0, token = 0;
  bool operator==(const StreamPlace&) const = default;
};

// Each epoch shuffles the shards and the documents of each shard, and visits every document once.
class DocumentOrder {
 public:
  // Error: the corpus is empty.
  DocumentOrder(const Tokens& tokens, uint64_t seed);

  // The remaining tokens of the current document, and its label.
  TokenSpan rest() const { return {document_.first + place_.token, document_.end}; }
  int64_t label() const { return tokens_.label(shard_, index_); }
  std::vector<TokenSpan> take(int64_t tokens);

  const StreamPlace& place() const { return place_; }
  // Error: the corpus does not have this position.
  void go_to(const StreamPlace& place);

 private:
  void enter_shard();
  void enter_document();

  Tokens tokens_;
  uint64_t seed_;
  StreamPlace place_;
  int64_t shard_ = 0, index_ = 0;  // the current document, as arguments of Tokens::document
  Permutation documents_{1, 0};    // the document order in this shard; slow to compute
  TokenSpan document_;
};

struct PackingOptions {
  int64_t row;        // tokens per row
  int64_t buffer;     // documents to choose from
  int64_t documents;  // documents to pack
  bool cuts;          // documents can be cut; if false, none is longer than a row
};

// Packs the next documents into rows by best fit: the longest buffered document that fits into the rest of a row is added to the row (on a
// tie, the earliest), until none fits. If the row then lacks two or more tokens and `cuts` is true, the shortest document is cut to fill
// the row. The remainder of that document starts with the last token before the cut, the input for the first token after the cut.
std::vector<std::vector<TokenSpan>> pack_documents(DocumentOrder& documents, const PackingOptions& options);

}  // namespace ricci
