// Training rows from one or more corpora, without an end. The documents come in a random order. They follow one another and are cut into
// rows, or each is a row, or several are packed into a row. A shuffle buffer mixes the rows. Everything follows from the seed, and the
// place of the stream is a short text. So a training that is resumed reads what it would have read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.h"
#include "data/feeds/document_order.h"
#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

// cut: the documents follow each other, and rows of context + 1 tokens are cut from them; the last token of a row is the first of the next.
// whole: a document each: of keep_masked() if the tokens have a mask, else under its label and without the tokens after the context.
// packed: by best fit; documents with a mask as a whole, others may be cut. A model reads over the ends of documents in a row.
enum class RowKind : uint8_t { cut, whole, packed };

struct StreamOptions {
  int64_t context = 0;
  int64_t batch = 1;  // rows of a micro-batch
  uint64_t seed = 0;
  int64_t shuffle_buffer = 1024;     // rows; with 1 the order is not shuffled
  std::vector<double> weights = {};  // shares of the corpora; if empty, their numbers of tokens, or of documents if these are rows
  RowKind rows = RowKind::cut;
  bool full_width = false;  // rows are as long as the context even if all documents of a batch are shorter
};

class SequenceStream final : public Feed {
 public:
  // Errors: no corpus; one that is shorter than context + 1, or has no labels for whole documents; different tokenizers; another number
  // of weights than of corpora, or a weight that is not positive.
  SequenceStream(const std::vector<Tokens>& corpora, const StreamOptions& options);

  Batch next() override;
  void skip() override;
  std::string place() const override;
  void go_to(int64_t step, const std::string& place) override;

 private:
  // A row before it is read.
  struct Unread {
    std::vector<TokenSpan> pieces;
    int64_t label = -1;
  };
  struct Corpus {
    Tokens tokens;
    DocumentOrder documents;
    uint64_t seed;
    int64_t size;                     // rows of a full buffer, unless they are packed
    int64_t taken = 0;                // rows; if they are packed, from this buffer
    StreamPlace block = {};           // the place from which the buffer was filled
    std::vector<Unread> buffer = {};  // in the order of the stream; empty until it is filled
    Permutation order{1, 0};          // in which they are taken
  };
  Corpus& next_corpus();
  Unread take(Corpus& corpus) const;
  void fill(Corpus& corpus) const;
  Unread next_in_order(Corpus& corpus) const;

  StreamOptions options_;
  std::vector<double> shares_;  // the weights added up, over their sum
  std::vector<Corpus> corpora_;
  int64_t number_ = 0;  // the next row's
};

}  // namespace ricci
