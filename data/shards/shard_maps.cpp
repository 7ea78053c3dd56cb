#include "data/shards/shard_maps.h"

#include <cstring>

#include "core/error.h"

namespace ricci {
namespace {

constexpr size_t kMaxMaps = 64;      // open files and maps are limited
constexpr int64_t kBlock = 2 << 20;  // what the system may map around a page that is touched: a huge page at most

template <class T> T value_at(std::string_view bytes, int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Widens ids; returns where the first stands that is outside of the vocabulary, or -1.
template <class T> int64_t widen(const char* packed, std::span<int64_t> ids, int64_t vocab_size) {
  int64_t largest = -1;
  for (size_t i = 0; i < ids.size(); ++i) {
    T id;
    std::memcpy(&id, packed + i * sizeof(T), sizeof(T));
    ids[i] = id;
    largest = largest < ids[i] ? ids[i] : largest;
  }
  if (largest < vocab_size) return -1;
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= vocab_size) return static_cast<int64_t>(i);
  return -1;
}

// Ids as a shard holds them, whose first is that of token `first`. Error: one is outside of the vocabulary.
void widen(
    const char* packed, const ShardLayout& layout, const std::string& path, int64_t first, std::span<int64_t> ids, int64_t vocab_size) {
  const int64_t wrong = layout.bytes_per_token == 2 ? widen<uint16_t>(packed, ids, vocab_size) : widen<uint32_t>(packed, ids, vocab_size);
  if (wrong >= 0)
    fail("{}: id {} of token {} is outside the vocabulary of {}", {path, ids[static_cast<size_t>(wrong)], first + wrong, vocab_size});
}

[[noreturn]] void fail_cut(const std::string& path) { fail("{}: the shard was cut short while it was in use", {path}); }

}  // namespace

MappedShard::MappedShard(std::shared_ptr<const OpenFile> file, const ShardLayout& layout)
    : file_(std::move(file)), map_(*file_), layout_(layout) {
  const ShardLayout now = read_shard_header(*file_);
  if (now.tokens != layout.tokens || now.header.own_hash != layout.header.own_hash || now.bytes_per_token != layout.bytes_per_token)
    fail("{}: the shard changed while it was in use", {file_->path()});
}

// Touching a map beyond the end of its file would end the program.
void MappedShard::check_uncut() const {
  if (file_->size() < map_.size()) fail_cut(file_->path());
}

void MappedShard::read(int64_t first, std::span<int64_t> ids, int64_t vocab_size) const {
  check_uncut();
  widen(map_.bytes().data() + layout_.ids_offset + first * layout_.bytes_per_token, layout_, file_->path(), first, ids, vocab_size);
}

int64_t MappedShard::start(int64_t document) const {
  check_uncut();
  const auto start = value_at<uint64_t>(map_.bytes(), layout_.header.index_offset() + document * 8);
  if (start >= static_cast<uint64_t>(layout_.tokens) || (document == 0 && start != 0))
    fail("{}: document {} of the shard starts at token {} of {}", {file_->path(), document, start, layout_.tokens});
  return static_cast<int64_t>(start);
}

int64_t MappedShard::label(int64_t document) const {
  check_uncut();
  const int64_t classes = layout_.header.classes;
  if (classes == 0) return -1;
  const int64_t label = value_at<int32_t>(map_.bytes(), layout_.header.labels_offset() + document * 4);
  if (label < 0 || label >= classes)
    fail("{}: label {} of document {} is not one of {} classes", {file_->path(), label, document, classes});
  return label;
}

// The blocks that a use touches first, in bytes.
int64_t ShardMaps::touch(Map& map, int64_t offset, int64_t bytes) const {
  int64_t more = 0;
  for (int64_t block = offset / kBlock; block <= (offset + bytes - 1) / kBlock; ++block) {
    if (map.touched[static_cast<size_t>(block)]) continue;
    map.touched[static_cast<size_t>(block)] = true;
    more += kBlock;
  }
  return more;
}

void ShardMaps::map(size_t number) {
  const auto& [path, layout, held] = shards_[number];
  const auto file = held ? held : std::make_shared<const OpenFile>(path);
  auto shard = std::make_shared<const MappedShard>(file, layout);
  if (layout.is_prepared && !held && !checked_[number]) check_shard_body(*file, layout.header);
  checked_[number] = true;
  const int64_t size = layout.is_prepared ? layout.header.file_bytes() : layout.ids_offset + layout.tokens * layout.bytes_per_token;
  maps_[number] = {std::move(shard), std::vector<bool>(static_cast<size_t>(size / kBlock + 1))};
}

std::shared_ptr<const MappedShard> ShardMaps::get(size_t number, int64_t offset, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (touched_ > kMaxResident || maps_.size() > kMaxMaps) {
    maps_.clear();
    touched_ = 0;
  }
  if (!maps_.contains(number)) map(number);
  Map& map = maps_[number];
  touched_ += touch(map, offset, bytes);
  return map.shard;
}

// The packed ids go to the end of the target and are widened from the front, where none is overwritten unread.
void ShardMaps::read(size_t number, int64_t first, std::span<int64_t> ids, int64_t vocab_size) {
  const auto& [path, layout, held] = shards_[number];
  const int64_t offset = layout.ids_offset + first * layout.bytes_per_token;
  const size_t bytes = ids.size() * static_cast<size_t>(layout.bytes_per_token);
  if (!held) return get(number, offset, static_cast<int64_t>(bytes))->read(first, ids, vocab_size);
  char* const packed = reinterpret_cast<char*>(ids.data()) + ids.size_bytes() - bytes;
  if (held->read(packed, bytes, offset) < bytes) fail_cut(path);
  widen(packed, layout, path, first, ids, vocab_size);
}

}  // namespace ricci
