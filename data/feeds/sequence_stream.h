// Training sequences from one or several corpora, without an end. The documents come in a random order. They
// follow one another and are cut into sequences, or several are packed into each, or each is a sequence under its label. A shuffle buffer
// mixes the sequences. Everything follows from the seed, and the place of the stream is a short text, so that a training that goes on reads
// what it would have read.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "data/feeds/document_order.h"
#include "data/feeds/feed.h"
#include "data/feeds/packing.h"
#include "data/shards/tokens.h"

namespace ricci {

struct StreamOptions {
  int64_t context = 0;
  uint64_t seed = 0;
  int64_t shuffle_buffer = 1024;     // sequences; with 1 the order is not shuffled
  std::vector<double> weights = {};  // shares of the corpora; if empty, their numbers of tokens, or of documents
  bool whole_documents = false;      // a sequence is a document under its label, without what exceeds the context
  bool conversations = false;        // or one of Conversations (conversations.h), with whole_documents
  bool full_width = false;           // every row of whole documents is as long as the context, however short they are
  bool packs = false;                // a sequence has several documents, or conversations, that fit best (packing.h)
};

// The sequences of one corpus.
class ShuffledSequences {
 public:
  ShuffledSequences(const Tokens& tokens, const StreamOptions& options, uint64_t seed);

  // The next sequence. read: context + 1 tokens, the last of which is the first of the sequence after it in the stream. A whole
  // document: its first tokens, at most `context` of them. Packed documents: the tokens of each. skip: it is not read.
  std::vector<int64_t> read();
  LabelledIds read_document();
  std::vector<std::vector<int64_t>> read_packed();
  void skip() { next(); }

  struct Place {
    int64_t taken = 0;  // sequences; where documents are packed, the ones that were packed together
    StreamPlace block;  // stream position from which the shuffle buffer was, or will be, filled
  };
  Place place() const { return {taken_, block_}; }
  // Error: there is no such place.
  void go_to(const Place& place);

 private:
  PackedRow next();
  void fill();

  Tokens tokens_;
  DocumentOrder head_, at_;  // what the buffer is filled from, and what reads sequences
  int64_t context_, buffer_;
  bool whole_documents_;
  std::optional<PackingOptions> packing_;
  uint64_t seed_;
  int64_t taken_ = 0;
  StreamPlace block_;
  std::vector<PackedRow> sequences_;  // in the buffer, in the order of the stream; empty until it is filled
  Permutation order_;                 // in which they are taken
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
  Batch text_batch(int64_t sequences);
  Batch packed_batch(int64_t sequences);
  Batch document_batch(int64_t sequences);

  std::vector<Tokens> corpora_;
  StreamOptions options_;
  std::vector<double> shares_;  // the weights added up, over their sum
  std::vector<ShuffledSequences> sequences_;
  int64_t number_ = 0;  // the next sequence's
};

}  // namespace ricci
