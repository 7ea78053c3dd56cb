// Training sequences from one or several corpora, without an end. The documents come in a random order. They
// are packed one after another and cut into sequences, or each is a sequence under its label. A shuffle buffer mixes the
// sequences. Everything follows from the seed, and the place of the stream is a short text, so that a training that goes on reads
// what it would have read.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "data/feeds/feed.h"
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

struct StreamOptions {
  int64_t context = 0;
  uint64_t seed = 0;
  int64_t shuffle_buffer = 1024;     // sequences; with 1 the order is not shuffled
  std::vector<double> weights = {};  // shares of the corpora; if empty, their numbers of tokens, or of documents
  bool whole_documents = false;      // a sequence is a document under its label, without what exceeds the context
  bool conversations = false;        // or one of Conversations (conversations.h), with whole_documents
  bool full_width = false;           // every row of whole documents is as long as the context, however short they are
};

// The sequences of one corpus.
class ShuffledSequences {
 public:
  ShuffledSequences(const Tokens& tokens, const StreamOptions& options, uint64_t seed);

  // The next sequence. A packed one has context + 1 tokens; the last one is also the first of the sequence after it in the stream.
  // A whole document gives its first tokens, at most `context`. skip() does not read it.
  std::vector<int64_t> read();
  LabelledIds read_document();
  void skip() { next(); }

  struct Place {
    int64_t taken = 0;  // sequences
    StreamPlace block;  // stream position from which the shuffle buffer was, or will be, filled
  };
  Place place() const { return {taken_, block_}; }
  // Error: there is no such place.
  void go_to(const Place& place);

 private:
  StreamPlace next();
  void fill();

  Tokens tokens_;
  DocumentOrder head_, at_;  // what the buffer is filled from, and what reads sequences
  int64_t context_, buffer_;
  bool whole_documents_;
  uint64_t seed_;
  int64_t taken_ = 0;
  StreamPlace block_;
  std::vector<StreamPlace> sequences_;  // in the buffer, in the order of the stream; empty before it is filled
  Permutation order_;                   // in which they are taken
};

class SequenceStream {
 public:
  // Errors: no corpus; one that is shorter than context + 1, or has no labels where whole documents are asked for; different
  // tokenizers; another number of weights than of corpora, or a weight that is not positive.
  SequenceStream(std::vector<Tokens> corpora, const StreamOptions& options);

  // The batches `mine` of the next step, which has `batches` batches of `sequences`. The others are passed without being read.
  // Error: mine is not a range of them.
  std::vector<Batch> next_step(Range mine, int64_t batches, int64_t sequences);
  std::vector<Batch> next_step(int64_t batches, int64_t sequences) { return next_step({0, batches}, batches, sequences); }

  // The place of the stream after the steps taken so far, for go_to() of another stream over the same corpora.
  std::string place() const;
  // Error: it is not the place of such a stream.
  void go_to(const std::string& place);

 private:
  ShuffledSequences& next_corpus();
  Batch packed_batch(int64_t sequences);
  Batch document_batch(int64_t sequences);

  std::vector<Tokens> corpora_;
  StreamOptions options_;
  std::vector<double> shares_;  // the weights added up, over their sum
  std::vector<ShuffledSequences> sequences_;
  int64_t number_ = 0;  // the next sequence's
};

}  // namespace ricci
