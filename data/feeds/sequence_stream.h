// Endless shuffled rows from one or more corpora. The documents come in a random order (document_order.h). Documents are cut or packed into
// rows, or each document is a row. A shuffle buffer separates the rows of a long document.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.h"
#include "data/feeds/document_order.h"
#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

// cut: the documents are joined and cut into rows of context + 1 tokens; the last token of a row is also the first of the next row.
// whole: each document is a row. Documents with a mask come from keep_masked(); the others have labels and are cut at the context.
// packed: pack_documents() makes the rows. Documents with a mask are not cut. A model attends across the boundaries between documents in a
// row.
enum class RowKind : uint8_t { cut, whole, packed };

struct StreamOptions {
  int64_t context = 0;
  int64_t batch = 1;  // rows per micro-batch
  uint64_t seed = 0;
  int64_t shuffle_buffer = 1024;     // rows in the buffer; with 1, rows are not shuffled
  std::vector<double> weights = {};  // relative frequency of each corpus; by default its size in tokens, or in documents if each is a row
  RowKind rows = RowKind::cut;
  bool full_width = false;  // short documents are padded to the context
};

class SequenceStream final : public Feed {
 public:
  // Errors: a corpus without a mask is shorter than context + 1 tokens, or has no labels although each document is a row.
  SequenceStream(const std::vector<Tokens>& corpora, const StreamOptions& options);
  SequenceStream(const SequenceStream&) = delete;  // buffered rows point to corpora_

  std::string place() const override;
  void go_to(int64_t step, const std::string& place) override;

 private:
  struct Corpus {
    Tokens tokens;
    DocumentOrder documents;
    uint64_t seed;
    int64_t taken = 0;             // rows taken in total or, if rows are packed, from this buffer
    StreamPlace block = {};        // position of the first row in the buffer
    std::vector<Row> buffer = {};  // rows in stream order; empty until the next fill()
    Permutation order{1, 0};       // permutation of the buffer
  };
  Row next_row() override;
  void fill(Corpus& corpus) const;
  Row next_in_order(Corpus& corpus) const;

  StreamOptions options_;
  std::vector<double> shares_;  // cumulative: the last is 1
  std::vector<Corpus> corpora_;
  int64_t number_ = 0;  // rows taken
};

}  // namespace ricci
