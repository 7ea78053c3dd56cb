// The documents of a corpus in an endless random order, computed and not stored. There can be more documents than fit into memory.
#pragma once
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "data/shards/tokens.h"

namespace ricci {

// The position in the order: the epoch, the ranks of shard and document in it, and the tokens of the document already taken.
struct StreamPlace {
  int64_t epoch = 0, shard = 0, document = 0, token = 0;
  bool operator==(const StreamPlace&) const = default;
};

// Every epoch visits each document once. It shuffles the shards, and the documents of each shard.
class DocumentOrder {
 public:
  // Error: the corpus is empty.
  DocumentOrder(const Tokens& tokens, uint64_t seed);

  // The remaining tokens of the document, and its label.
  TokenSpan rest() const { return {document_.first + place_.token, document_.end}; }
  int64_t label() const { return tokens_.label(shard_, index_); }
  // The next tokens.
  std::vector<TokenSpan> take(int64_t tokens);

  const StreamPlace& place() const { return place_; }
  // Error: the tokens do not have this position.
  void go_to(const StreamPlace& place);

 private:
  void enter_shard();
  void enter_document();

  Tokens tokens_;
  uint64_t seed_;
  StreamPlace place_;
  int64_t shard_ = 0, index_ = 0;  // the document, for Tokens::document
  Permutation documents_{1, 0};    // in this shard; kept; making one is slow
  TokenSpan document_;
};

struct PackingOptions {
  int64_t row;        // tokens
  int64_t buffer;     // documents that a row chooses from
  int64_t documents;  // to pack
  bool cuts;          // documents can be cut; if false, none is longer than a row
};

// Packs the next documents into rows by best fit: a row takes the longest buffered document that fits into its remainder (the earliest of
// equal ones), until none fits. With `cuts` the shortest document is then cut to fill the row if two or more tokens are missing. The
// remainder starts with the last token before the cut, the input for the first token after it.
std::vector<std::vector<TokenSpan>> pack_documents(DocumentOrder& documents, const PackingOptions& options);

}  // namespace ricci
