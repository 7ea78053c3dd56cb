#include "data/feeds/document_order.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/files/checksum.h"

namespace ricci {

namespace {

// A seed for each epoch, and for each shard in it (the shards themselves: -1).
uint64_t derived_seed(uint64_t seed, int64_t epoch, int64_t shard) {
  const std::array numbers{epoch, shard};
  return xxh64(bytes_of(numbers), seed);
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
  const auto shard = static_cast<int64_t>(shards_(static_cast<uint64_t>(place_.shard)));
  documents_ = Permutation(static_cast<uint64_t>(tokens_.documents(shard)), derived_seed(seed_, place_.epoch, shard));
  enter_document();
}

void DocumentOrder::enter_document() {
  const auto shard = static_cast<int64_t>(shards_(static_cast<uint64_t>(place_.shard)));
  document_ = tokens_.document(shard, static_cast<int64_t>(documents_(static_cast<uint64_t>(place_.document))));
}

int64_t DocumentOrder::label() const {
  const auto shard = static_cast<int64_t>(shards_(static_cast<uint64_t>(place_.shard)));
  return tokens_.label(shard, static_cast<int64_t>(documents_(static_cast<uint64_t>(place_.document))));
}

// Goes over tokens of the document, and to the next one at its end.
void DocumentOrder::pass(int64_t tokens) {
  place_.token += tokens;
  if (place_.token < document_.size()) return;
  place_.token = 0;
  if (++place_.document < static_cast<int64_t>(documents_.size())) return enter_document();
  place_.document = 0;
  if (++place_.shard < tokens_.shards()) return enter_shard();
  place_.shard = 0;
  ++place_.epoch;
  enter_epoch();
}

void DocumentOrder::read(std::span<int64_t> ids) {
  while (!ids.empty()) {
    const auto count = std::min(static_cast<size_t>(rest().size()), ids.size());
    tokens_.read(rest().first, ids.first(count));
    ids = ids.subspan(count);
    pass(static_cast<int64_t>(count));
  }
}

void DocumentOrder::skip(int64_t tokens) {
  while (tokens > 0) {
    const int64_t count = std::min(rest().size(), tokens);
    tokens -= count;
    pass(count);
  }
}

void DocumentOrder::go_to(const StreamPlace& place) {
  const auto impossible = [&] {
    fail("{}: epoch {}, shard {}, document {}, token {} is no place in its {} shards",
        {tokens_.name(), place.epoch, place.shard, place.document, place.token, tokens_.shards()});
  };
  if (place.epoch < 0 || place.shard < 0 || place.shard >= tokens_.shards() || place.document < 0 || place.token < 0) impossible();
  place_ = {place.epoch, place.shard, 0, 0};
  enter_epoch();
  if (place.document >= static_cast<int64_t>(documents_.size())) impossible();
  place_ = place;
  enter_document();
  if (place.token >= document_.size()) impossible();
}

}  // namespace ricci
