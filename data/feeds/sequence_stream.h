// Endless shuffled rows from one or more corpora. The documents come in a random order (document_order.h). They are cut or packed into
// rows, or each is a row. A shuffle buffer mixes the rows of long documents.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.h"
#include "data/feeds/document_order.h"
#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

// cut: the documents are joined and cut into rows of context + 1 tokens; the last token of a row is the first of the next.
// whole: each document is a row. With a mask these are keep_masked()'s documents; without one they have labels, and are cut at the context.
// packed: pack_documents(). Documents with a mask are not cut. A model attends across the documents of a row.
enum class RowKind : uint8_t { cut, whole, packed };

struct StreamOptions {
  int64_t context = 0;
  int64_t batch = 1;  // rows of a micro-batch
  uint64_t seed = 0;
  int64_t shuffle_buffer = 1024;     // rows; 1 does not shuffle them
  std::vector<double> weights = {};  // corpus shares; by default their sizes in tokens, or in documents if each is a row
  RowKind rows = RowKind::cut;
  bool full_width = false;  // short documents are padded to the context
};

class SequenceStream final : public Feed {
 public:
  // Errors: a corpus without a mask is shorter than context + 1, or whole documents have no labels.
  SequenceStream(const std::vector<Tokens>& corpora, const StreamOptions& options);
  SequenceStream(const SequenceStream&) = delete;  // its rows point to its tokens

  std::string place() const override;
  void go_to(int64_t step, const std::string& place) override;

 private:
  struct Corpus {
    Tokens tokens;
    DocumentOrder documents;
    uint64_t seed;
    int64_t taken = 0;             // total rows; packed rows: from this buffer
    StreamPlace block = {};        // the first row of the buffer
    std::vector<Row> buffer = {};  // in the order of the stream; empty until it is filled
    Permutation order{1, 0};       // their order
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
