// The documents of a corpus in a random order, without an end.
#pragma once
#include <cstdint>
#include <span>

#include "core/random.h"
#include "data/shards/tokens.h"

namespace ricci {

// The place where the stream goes on: epoch; shard and document by their rank in the order of the epoch; tokens of the document before it.
struct StreamPlace {
  int64_t epoch = 0, shard = 0, document = 0, token = 0;
  bool operator==(const StreamPlace&) const = default;
};

// The documents of a corpus in a random order, as one endless stream of tokens. In every epoch each document comes once: the shards
// in a random order, and the documents of each shard in a random order. Both orders are computed, not stored, so a place in the
// stream is four numbers, and memory does not grow with the corpus.
class DocumentOrder {
 public:
  // Error: there are no tokens.
  DocumentOrder(const Tokens& tokens, uint64_t seed);

  // Fills ids from here on.
  void read(std::span<int64_t> ids);
  void skip(int64_t tokens);
  // The rest of the document, and its label; and a step to the document after it.
  TokenSpan rest() const { return {document_.first + place_.token, document_.end}; }
  int64_t label() const;
  void skip_document() { pass(rest().size()); }

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
  TokenSpan document_;
};

}  // namespace ricci
