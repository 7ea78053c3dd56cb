#include "data/feeds/document_order.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/error.h"
#include "core/files/checksum.h"

namespace ricci {
namespace {

// A buffered document. In a set, documents are ordered by length, then by arrival.
struct Waiting {
  TokenSpan tokens;
  int64_t number;
  bool operator<(const Waiting& other) const {
    return tokens.size() != other.tokens.size() ? tokens.size() < other.tokens.size() : number < other.number;
  }
};

// Removes and returns the longest document that fits into `left` tokens (on a tie, the earliest). If none fits and `cuts` is true, cuts off
// and returns a part of the shortest.
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

DocumentOrder::DocumentOrder(const Tokens& tokens, uint64_t seed) : tokens_(tokens), seed_(seed) {
  if (tokens.size() == 0) fail("{}: has no tokens", {tokens.name()});
  enter_shard();
}

// The shard order and the document order of each shard have different seeds.
void DocumentOrder::enter_shard() {
  const auto order = [&](int64_t count, int64_t shard) {
    const std::array numbers{place_.epoch, shard};
    return Permutation(static_cast<uint64_t>(count), xxh64(bytes_of(numbers), seed_));
  };
  shard_ = static_cast<int64_t>(order(tokens_.shards(), -1)(static_cast<uint64_t>(place_.shard)));
  documents_ = order(tokens_.documents(shard_), shard_);
  enter_document();
}

void DocumentOrder::enter_document() {
  index_ = static_cast<int64_t>(documents_(static_cast<uint64_t>(place_.document)));
  document_ = tokens_.document(shard_, index_);
}

std::vector<TokenSpan> DocumentOrder::take(int64_t tokens) {
  std::vector<TokenSpan> taken;
  while (tokens > 0) {
    const TokenSpan left = rest();
    const int64_t count = std::min(left.size(), tokens);
    taken.push_back({left.first, left.first + count});
    tokens -= count;
    place_.token += count;
    if (count < left.size()) break;
    place_ = {place_.epoch, place_.shard, place_.document + 1, 0};
    if (place_.document == tokens_.documents(shard_)) place_ = {place_.epoch, place_.shard + 1, 0, 0};
    if (place_.shard == tokens_.shards()) place_ = {place_.epoch + 1, 0, 0, 0};
    place_.document == 0 ? enter_shard() : enter_document();
  }
  return taken;
}

void DocumentOrder::go_to(const StreamPlace& place) {
  place_ = place;
  enter_shard();
  if (place.token < 0 || rest().size() < 1) fail("{}: token {} is outside its document", {tokens_.name(), place.token});
}

std::vector<std::vector<TokenSpan>> pack_documents(DocumentOrder& documents, const PackingOptions& options) {
  std::set<Waiting> waiting;
  int64_t number = 0;  // documents taken
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
