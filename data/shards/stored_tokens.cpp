#include "data/shards/stored_tokens.h"

#include <algorithm>

#include "core/files/checksum.h"
#include "data/shards/shard_writer.h"

namespace ricci {
namespace {

template <class T> std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Calls use(bytes) for all ids, packed as Id.
template <class Id, class Use> void for_each_packed(const Tokens& tokens, const Use& use) {
  constexpr int64_t at_once = 1 << 16;
  for (int64_t first = 0; first < tokens.size(); first += at_once) {
    std::vector<int64_t> ids(static_cast<size_t>(std::min(at_once, tokens.size() - first)));
    tokens.read(first, ids);
    use(bytes_of(std::vector<Id>(ids.begin(), ids.end())));
  }
}

}  // namespace

uint64_t hash_of_text(const Tokens& tokens) {
  uint64_t hash = hash_bytes("");
  const auto add = [&](std::string_view packed) { hash = hash_bytes(packed, hash); };
  if (bytes_per_token(tokens.vocab_size()) == 2) for_each_packed<uint16_t>(tokens, add);
  else for_each_packed<uint32_t>(tokens, add);
  return hash;
}

uint64_t hash_of_documents(const Tokens& tokens) {
  StreamHash ids(0);
  for_each_packed<uint32_t>(tokens, [&](std::string_view packed) { ids.add(packed); });
  std::vector<int64_t> starts{0};
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < tokens.documents(0); ++i) {
    starts.push_back(tokens.document(0, i).end);
    labels.push_back(static_cast<int32_t>(tokens.label(0, i)));
  }
  return xxh64(bytes_of(labels), xxh64(bytes_of(starts), ids.finish()));
}

StoredTokens::StoredTokens(ShardedTokens tokens, std::string name, bool is_text)
    : tokens_(std::move(tokens)), name_(std::move(name)), is_text_(is_text) {
  for (int64_t shard = 0; shard < tokens_.shards(); ++shard) before_.push_back(before_.back() + tokens_.documents(shard));
}

void StoredTokens::read(int64_t first, std::span<int64_t> ids) const {
  check_range(first, ids);
  tokens_.read(first, ids);
}

// The shard of a document, and its number in it.
std::pair<int64_t, int64_t> StoredTokens::find(int64_t index) const {
  const auto shard = std::upper_bound(before_.begin(), before_.end() - 1, index) - before_.begin() - 1;
  return {shard, index - before_[static_cast<size_t>(shard)]};
}

int64_t StoredTokens::documents(int64_t shard) const { return is_text_ ? TokenSource::documents(shard) : before_.back(); }

TokenSpan StoredTokens::document(int64_t shard, int64_t index) const {
  if (is_text_) return TokenSource::document(shard, index);
  const auto [found, number] = find(index);
  return tokens_.document(found, number);
}

int64_t StoredTokens::label(int64_t shard, int64_t index) const {
  if (is_text_) return TokenSource::label(shard, index);
  const auto [found, number] = find(index);
  return tokens_.label(found, number);
}

}  // namespace ricci
