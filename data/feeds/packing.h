// Several documents in one row, by best fit: few positions are padding. The model reads over the ends of documents, as in any text.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "data/feeds/document_order.h"
#include "data/feeds/feed.h"

namespace ricci {

// A document, or a part of one, in a row: its tokens from `place` on.
struct PackedPiece {
  StreamPlace place;
  int64_t tokens = 0;
  bool operator==(const PackedPiece&) const = default;
};
using PackedRow = std::vector<PackedPiece>;

struct PackingOptions {
  int64_t row = 0;        // tokens
  int64_t buffer = 1024;  // documents that a row chooses from
  int64_t documents = 0;  // that are packed together
  bool cuts = false;      // documents may be cut; else none is longer than a row
};

// Packs the next documents of the order. A row takes the longest document of the buffer that fits into what is left of it, the earliest of
// equals, until none fits. With `cuts` the shortest document of the buffer is then cut to fill the row. Its rest stays in the buffer, as a
// document that begins with the last token of the cut part: so every token of a document but the first is predicted once. What is left is
// padding: without `cuts`, where less than two tokens are left, and where the buffer is empty.
std::vector<PackedRow> pack_documents(DocumentOrder& documents, const PackingOptions& options);

// The batch of packed rows, given the tokens of each document. The last token of a document predicts nothing, and neither does padding.
// vocab: V where documents are conversations (conversations.h), else 0.
Batch packed_rows(std::span<const std::vector<std::vector<int64_t>>> rows, int64_t context, int64_t vocab);

}  // namespace ricci
