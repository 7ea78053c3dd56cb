#include "data/feeds/document_order.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/error.h"
#include "core/files/checksum.h"

namespace ricci {
namespace {

// Every epoch has its seed for the order of the shards (shard -1), and for the documents of each shard.
uint64_t derived_seed(uint64_t seed, int64_t epoch, int64_t shard) {
  const std::array numbers{epoch, shard};
  return xxh64(bytes_of(numbers), seed);
}

// A document of the buffer. A set orders them by length, and equal lengths by arrival.
struct Waiting {
  TokenSpan tokens;
  int64_t number;
  bool operator<(const Waiting& other) const {
    return tokens.size() != other.tokens.size() ? tokens.size() < other.tokens.size() : number < other.number;
  }
};

// The longest document that fits into `left` tokens, of equal ones the earliest; if none fits, with `cuts` a part of the shortest.
TokenSpan best_fit(std::set<Waiting>& waiting, int64_t left, bool cuts) {
  if (const auto longer = waiting.lower_bound({{0, left + 1}, -1}); longer != waiting.begin())
    return waiting.extract(waiting.lower_bound({{0, std::prev(longer)->tokens.size()}, -1})).value().tokens;
  if (!cuts || left < 2) return {};
  Waiting shortest = waiting.extract(waiting.begin()).value();
  const TokenSpan part{shortest.tokens.first, shortest.tokens.first + left};
  shortest.tokens.first = part.end - 1;
  waiting.insert(shortest);
  return part;
}

}  // namespace

DocumentOrder::DocumentOrder(const Tokens& tokens, uint64_t seed) : tokens_(tokens), seed_(seed), shards_(1, 0), documents_(1, 0) {
  if (tokens.size() == 0) fail("{}: has no tokens", {tokens.name()});
  enter_epoch();
}

void DocumentOrder::enter_epoch() {
  shards_ = Permutation(static_cast<uint64_t>(tokens_.shards()), derived_seed(seed_, place_.epoch, -1));
  enter_shard();
}

void DocumentOrder::enter_shard() {
  shard_ = static_cast<int64_t>(shards_(static_cast<uint64_t>(place_.shard)));
  documents_ = Permutation(static_cast<uint64_t>(tokens_.documents(shard_)), derived_seed(seed_, place_.epoch, shard_));
  enter_document();
}

void DocumentOrder::enter_document() {
  index_ = static_cast<int64_t>(documents_(static_cast<uint64_t>(place_.document)));
  document_ = tokens_.document(shard_, index_);
}

// Moves past tokens of the document, and at its end to the next document.
void DocumentOrder::pass(int64_t tokens) {
  place_.token += tokens;
  if (rest().size() > 0) return;
  place_.token = 0;
  if (++place_.document < static_cast<int64_t>(documents_.size())) return enter_document();
  place_.document = 0;
  if (++place_.shard < tokens_.shards()) return enter_shard();
  place_.shard = 0;
  ++place_.epoch;
  enter_epoch();
}

std::vector<TokenSpan> DocumentOrder::take(int64_t tokens) {
  std::vector<TokenSpan> taken;
  while (tokens > 0) {
    const TokenSpan left = rest();
    const int64_t count = std::min(left.size(), tokens);
    taken.push_back({left.first, left.first + count});
    tokens -= count;
    pass(count);
  }
  return taken;
}

void DocumentOrder::go_to(const StreamPlace& place) {
  place_ = place;
  enter_epoch();
  if (place.token < 0 || rest().size() < 1) fail("{}: token {} is outside its document", {tokens_.name(), place.token});
}

std::vector<std::vector<TokenSpan>> pack_documents(DocumentOrder& documents, const PackingOptions& options) {
  std::set<Waiting> waiting;
  int64_t number = 0;  // number of documents taken
  const auto fill = [&] {
    for (; number < options.documents && std::ssize(waiting) < options.buffer; ++number)
      waiting.insert({documents.take(documents.rest().size())[0], number});
    return !waiting.empty();
  };
  std::vector<std::vector<TokenSpan>> rows;
  while (fill()) {
    std::vector<TokenSpan>& row = rows.emplace_back();
    for (int64_t left = options.row; left > 0 && fill();) {
      const TokenSpan piece = best_fit(waiting, left, options.cuts);
      if (piece.size() == 0) break;
      row.push_back(piece);
      left -= piece.size();
    }
  }
  return rows;
}

}  // namespace ricci
