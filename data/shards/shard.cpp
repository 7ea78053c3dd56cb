#include "data/shards/shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "core/error.h"
#include "core/files/checksum.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "ids and headers are written as they are in memory");

namespace {

struct LlmcKind {
  int32_t magic, version;
  int64_t bytes_per_token;
};
constexpr std::array kLlmcKinds = {LlmcKind{20240520, 1, 2}, LlmcKind{20240801, 7, 4}};  // GPT-2, Llama 3
constexpr int64_t kLlmcHeader = 256 * sizeof(int32_t);

const LlmcKind* find_kind(std::string_view start) {
  int32_t magic = 0;
  std::memcpy(&magic, start.data(), std::min(start.size(), sizeof magic));
  for (const LlmcKind& kind : kLlmcKinds)
    if (kind.magic == magic) return &kind;
  return nullptr;
}

bool is_prepared(std::string_view start) {
  const ShardHeader header;
  return start.starts_with(std::string_view(header.magic, sizeof header.magic));
}

// Widens packed ids. Returns the index of the first id outside the vocabulary, or -1.
template <class Id> int64_t widen(const char* packed, std::span<int64_t> ids, int64_t vocab_size) {
  int64_t largest = -1;
  for (size_t i = 0; i < ids.size(); ++i) {
    Id id;
    std::memcpy(&id, packed + i * sizeof(Id), sizeof(Id));
    ids[i] = id;
    largest = largest < ids[i] ? ids[i] : largest;
  }
  if (largest < vocab_size) return -1;
  return std::find_if(ids.begin(), ids.end(), [&](int64_t id) { return id >= vocab_size; }) - ids.begin();
}

}  // namespace

uint64_t ShardHeader::hash() const { return xxh64({reinterpret_cast<const char*>(this), offsetof(ShardHeader, own_hash)}); }

bool is_shard(const File& file) {
  std::array<char, sizeof ShardHeader::magic> start{};
  const std::string_view read(start.data(), file.read(start.data(), start.size(), 0));
  return is_prepared(read) || find_kind(read);
}

std::string shard_name(int64_t number) { return format_message("shard-{:05}.tokens", {number}); }

bool is_shard_name(std::string_view name) { return name.starts_with("shard-") && name.ends_with(".tokens"); }

ShardFile::ShardFile(const std::string& path) : file_(path) {
  const size_t bytes = file_.read(&header_, sizeof header_, 0);
  const std::string_view start(reinterpret_cast<const char*>(&header_), bytes);
  if (const LlmcKind* const kind = find_kind(start)) {
    read_llmc_header(kind->version, kind->bytes_per_token);
    return;
  }
  if (!is_prepared(start)) fail("{}: is not a shard", {path});
  if (bytes < sizeof header_) fail("{}: the shard is cut short inside its header", {path});
  if (header_.version != 1 && !header_.has_mask()) fail("{}: the shard version is {}, expected 1 or 2", {path, header_.version});
  if (header_.own_hash != header_.hash()) fail("{}: the header of the shard is damaged", {path});
  check_size(header_.file_bytes());
}

void ShardFile::read_llmc_header(int32_t version, int64_t bytes_per_token) {
  std::array<int32_t, 3> start{};
  if (file_.size() < kLlmcHeader || file_.read(start.data(), sizeof start, 0) < sizeof start)
    fail("{}: the shard is cut short inside its header", {path()});
  if (start[1] != version) fail("{}: the version of the llm.c shard is {}, expected {}", {path(), start[1], version});
  if (start[2] <= 0) fail("{}: the llm.c shard has {} tokens, expected 1 or more", {path(), start[2]});
  const int64_t bytes = kLlmcHeader + start[2] * bytes_per_token;
  check_size(bytes);
  header_ = {};
  header_.version = 0;
  header_.bytes_per_token = static_cast<uint32_t>(bytes_per_token);
  header_.tokens = start[2];
  header_.documents = (header_.tokens + kBlock - 1) / kBlock;
  header_.body_hash = hash_of_file(file_, 0, bytes);
}

void ShardFile::check_size(int64_t expected) const {
  if (const int64_t size = file_.size(); size != expected)
    fail("{}: the shard has {} bytes, expected {}; it was {}", {path(), size, expected, size < expected ? "cut short" : "extended"});
}

void ShardFile::check_body() const {
  if (is_checked_ || !header_.is_prepared()) return;
  if (hash_of_file(file_, sizeof header_, header_.file_bytes()) != header_.body_hash)
    fail("{}: the shard was altered or damaged; its checksum is wrong", {path()});
  is_checked_ = true;
}

void ShardFile::read_at(int64_t place, void* target, size_t bytes) const {
  check_body();
  if (file_.read(target, bytes, place) < bytes) fail("{}: the shard was cut short while it was in use", {path()});
}

// Packed ids are read into the end of the target and widened from the front: each is read before it is overwritten.
void ShardFile::read(int64_t first, std::span<int64_t> ids, int64_t vocab_size) const {
  const size_t bytes = ids.size() * header_.bytes_per_token;
  char* const packed = reinterpret_cast<char*>(ids.data()) + ids.size_bytes() - bytes;
  read_at((header_.is_prepared() ? sizeof header_ : kLlmcHeader) + first * header_.bytes_per_token, packed, bytes);
  const int64_t wrong = header_.bytes_per_token == 2 ? widen<uint16_t>(packed, ids, vocab_size) : widen<uint32_t>(packed, ids, vocab_size);
  if (wrong >= 0)
    fail("{}: id {} at position {} is outside the vocabulary of {}", {path(), ids[static_cast<size_t>(wrong)], first + wrong, vocab_size});
}

void ShardFile::read_counts(int64_t first, std::span<uint8_t> counts) const {
  if (!header_.has_mask()) return std::fill(counts.begin(), counts.end(), uint8_t{1});
  const auto before = static_cast<size_t>(first % 8);
  std::string bits((before + counts.size() + 7) / 8, '\0');
  read_at(header_.mask_offset() + first / 8, bits.data(), bits.size());
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<unsigned char>(bits[(before + i) / 8]) >> (before + i) % 8 & 1;
}

TokenSpan ShardFile::document(int64_t number) const {
  const int64_t tokens = header_.tokens;
  if (!header_.is_prepared()) return {number * kBlock, std::min(tokens, (number + 1) * kBlock)};
  const bool is_last = number + 1 == header_.documents;
  std::array<uint64_t, 2> starts = {0, static_cast<uint64_t>(tokens)};
  read_at(header_.index_offset() + number * 8, starts.data(), is_last ? 8 : 16);
  return {static_cast<int64_t>(starts[0]), static_cast<int64_t>(starts[1])};
}

int64_t ShardFile::label(int64_t document) const {
  if (header_.classes == 0) return -1;
  int32_t label = 0;
  read_at(header_.labels_offset() + document * 4, &label, sizeof label);
  return label;
}

}  // namespace ricci
