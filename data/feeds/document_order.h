// The documents of a corpus in a random order, without an end, and rows of them.
#pragma once
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "data/shards/tokens.h"

namespace ricci {

// The place where the stream continues: epoch; shard and document by their rank in the order of the epoch; tokens of the document before
// it.
struct StreamPlace {
  int64_t epoch = 0, shard = 0, document = 0, token = 0;
  bool operator==(const StreamPlace&) const = default;
};

// The documents of a corpus in a random order, as one endless stream of tokens. In every epoch each document comes once: the shards
// in a random order, and the documents of each shard in a random order. Both orders are computed, not stored. So a place in the
// stream is four numbers, and memory does not grow with the corpus.
class DocumentOrder {
 public:
  // Error: there are no tokens.
  DocumentOrder(const Tokens& tokens, uint64_t seed);

  // The rest of the document, and its label.
  TokenSpan rest() const { return {document_.first + place_.token, document_.end}; }
  int64_t label() const { return tokens_.label(shard_, index_); }
  // The next tokens.
  std::vector<TokenSpan> take(int64_t tokens);

  const StreamPlace& place() const { return place_; }
  // Error: there is no such place in these tokens.
  void go_to(const StreamPlace& place);

 private:
  void pass(int64_t tokens);
  void enter_epoch();
  void enter_shard();
  void enter_document();

  Tokens tokens_;
  uint64_t seed_;
  StreamPlace place_;
  Permutation shards_, documents_;  // for this epoch, and for this shard in it
  int64_t shard_ = 0, index_ = 0;   // where the tokens have the document
  TokenSpan document_;
};

struct PackingOptions {
  int64_t row;        // tokens
  int64_t buffer;     // documents that a row chooses from
  int64_t documents;  // that are packed together
  bool cuts;          // documents can be cut; else none is longer than a row
};

// Packs the next documents of the order into rows by best fit. A row takes the longest document of the buffer that fits into the rest of
// the row, the earliest of equals, until none fits. With `cuts` the shortest document of the buffer is then cut to fill the row. Its rest
// stays in the buffer, as a document that begins with the last token of the cut part, because otherwise nothing would predict the token
// after the cut. A row stays shorter without `cuts`, if less than two tokens are left, and if the buffer is empty.
std::vector<std::vector<TokenSpan>> pack_documents(DocumentOrder& documents, const PackingOptions& options);

}  // namespace ricci
