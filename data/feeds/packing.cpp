#include "data/feeds/packing.h"

#include <algorithm>
#include <set>

namespace ricci {
namespace {

// A document of the buffer; the order of a set is the order of their lengths, and then of their arrival.
struct Waiting {
  int64_t tokens, number;
  StreamPlace place;
  bool operator<(const Waiting& other) const { return tokens != other.tokens ? tokens < other.tokens : number < other.number; }
};

class Buffer {
 public:
  Buffer(DocumentOrder& documents, const PackingOptions& options) : documents_(documents), options_(options) {}

  // Takes documents from the order until the buffer is full. Returns false if there is none.
  bool fill() {
    for (; number_ < options_.documents && std::ssize(waiting_) < options_.buffer; ++number_) {
      waiting_.insert({documents_.rest().size(), number_, documents_.place()});
      documents_.skip_document();
    }
    return !waiting_.empty();
  }
  // The longest that fits, the earliest of equals; with `cuts` a part of the shortest. No tokens: there is none.
  PackedPiece take(int64_t left) {
    auto found = waiting_.lower_bound({left + 1, -1, {}});
    if (found == waiting_.begin()) return options_.cuts && left > 1 ? cut(left) : PackedPiece{};
    found = waiting_.lower_bound({std::prev(found)->tokens, -1, {}});
    const PackedPiece piece{found->place, found->tokens};
    waiting_.erase(found);
    return piece;
  }

 private:
  PackedPiece cut(int64_t left) {
    Waiting rest = waiting_.extract(waiting_.begin()).value();
    const PackedPiece piece{rest.place, left};
    rest.place.token += left - 1;
    rest.tokens -= left - 1;
    waiting_.insert(rest);
    return piece;
  }

  DocumentOrder& documents_;
  PackingOptions options_;
  std::set<Waiting> waiting_;
  int64_t number_ = 0;  // the next document's
};

// Writes the tokens of one document from a position of a row on; the last token of a full row is no input.
void add_document(Batch& batch, int64_t row, int64_t start, const std::vector<int64_t>& ids, int64_t vocab) {
  for (int64_t i = 0; i < std::min(std::ssize(ids), batch.context - start); ++i) {
    const auto element = static_cast<size_t>(row * batch.context + start + i);
    const int64_t id = ids[static_cast<size_t>(i)], next = i + 1 < std::ssize(ids) ? ids[static_cast<size_t>(i + 1)] : kNoTarget;
    batch.ids_bc[element] = vocab ? id % vocab : id;
    if (next < vocab) continue;  // there is no target, or it does not count
    batch.targets_bc[element] = next - vocab;
    ++batch.scored;
  }
}

}  // namespace

std::vector<PackedRow> pack_documents(DocumentOrder& documents, const PackingOptions& options) {
  Buffer buffer(documents, options);
  std::vector<PackedRow> rows;
  while (buffer.fill()) {
    PackedRow row;
    for (int64_t left = options.row; left > 0 && buffer.fill();) {
      const PackedPiece piece = buffer.take(left);
      if (piece.tokens == 0) break;
      row.push_back(piece);
      left -= piece.tokens;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Batch packed_rows(std::span<const std::vector<std::vector<int64_t>>> rows, int64_t context, int64_t vocab) {
  const auto count = std::ssize(rows);
  const auto size = static_cast<size_t>(count * context);
  Batch batch{count, context, std::vector<int64_t>(size, 0), std::vector<int64_t>(size, kNoTarget)};
  for (int64_t row = 0; row < count; ++row) {
    int64_t start = 0;
    for (const std::vector<int64_t>& ids : rows[static_cast<size_t>(row)]) {
      add_document(batch, row, start, ids, vocab);
      start += std::ssize(ids);
    }
  }
  return batch;
}

}  // namespace ricci
