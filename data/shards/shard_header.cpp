// Headers of shards, and what can be wrong with them.
#include "data/shards/shard_header.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "core/error.h"
#include "core/files/checksum.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "ids and headers are written as they lie in memory");

namespace {

// What llm.c writes for one kind of tokenizer.
struct LlmcKind {
  int32_t magic, version;
  int64_t bytes_per_token;
};
constexpr std::array kLlmcKinds = {LlmcKind{20240520, 1, 2}, LlmcKind{20240801, 7, 4}};
constexpr int64_t kLlmcHeader = 256 * sizeof(int32_t);
constexpr int64_t kMaxTokens = INT64_MAX / 64;  // offsets stay inside of 64 bits

const LlmcKind* find_kind(int32_t magic) {
  for (const LlmcKind& kind : kLlmcKinds)
    if (kind.magic == magic) return &kind;
  return nullptr;
}

void check_size(const OpenFile& file, int64_t expected) {
  if (const int64_t size = file.size(); size != expected)
    fail("{}: the shard has {} bytes instead of {}: it was {}", {file.path(), size, expected, size < expected ? "cut short" : "continued"});
}

ShardLayout read_llmc_header(const OpenFile& file, const LlmcKind& kind) {
  std::array<int32_t, 3> start{};
  if (file.size() < kLlmcHeader || file.read(start.data(), sizeof start, 0) < sizeof start)
    fail("{}: the shard is cut short inside its header", {file.path()});
  if (start[1] != kind.version) fail("{}: a shard of llm.c of version {}, expected {}", {file.path(), start[1], kind.version});
  if (start[2] <= 0) fail("{}: a shard of llm.c with {} tokens", {file.path(), start[2]});
  check_size(file, kLlmcHeader + start[2] * kind.bytes_per_token);
  return {.tokens = start[2], .bytes_per_token = kind.bytes_per_token, .ids_offset = kLlmcHeader};
}

bool is_possible(const ShardHeader& h) {
  return (h.bytes_per_token == 2 || h.bytes_per_token == 4) && h.vocab_size > 0 &&
         h.vocab_size <= (h.bytes_per_token == 2 ? 1 << 16 : INT64_C(1) << 32) && h.tokens >= 0 && h.tokens <= kMaxTokens &&
         h.documents >= (h.tokens > 0) && h.documents <= h.tokens && h.text_bytes >= 0 && h.number >= 0 && h.classes >= 0 &&
         h.end.input >= 0 && h.end.document >= 0 && h.end.byte >= 0;
}

}  // namespace

uint64_t ShardHeader::hash() const { return xxh64({reinterpret_cast<const char*>(this), offsetof(ShardHeader, own_hash)}); }

bool is_shard(const OpenFile& file) {
  std::array<char, sizeof ShardHeader::magic> start{};
  const size_t got = file.read(start.data(), start.size(), 0);
  int32_t magic = 0;
  std::memcpy(&magic, start.data(), sizeof magic);
  return (got == start.size() && std::memcmp(start.data(), ShardHeader().magic, start.size()) == 0) ||
         (got >= sizeof magic && find_kind(magic));
}

ShardLayout read_shard_header(const OpenFile& file) {
  ShardHeader header;
  const size_t got = file.read(&header, sizeof header, 0);
  int32_t magic = 0;
  std::memcpy(&magic, header.magic, sizeof magic);
  if (const LlmcKind* kind = got >= sizeof magic ? find_kind(magic) : nullptr) return read_llmc_header(file, *kind);
  if (got < sizeof header.magic || std::memcmp(header.magic, ShardHeader().magic, sizeof header.magic) != 0)
    fail("{}: is not a shard", {file.path()});
  if (got < sizeof header) fail("{}: the shard is cut short inside its header", {file.path()});
  if (header.version != ShardHeader().version)
    fail("{}: a shard of version {}, expected {}", {file.path(), header.version, ShardHeader().version});
  if (header.own_hash != header.hash() || !is_possible(header)) fail("{}: the header of the shard is damaged", {file.path()});
  check_size(file, header.file_bytes());
  return {.is_prepared = true,
      .tokens = header.tokens,
      .bytes_per_token = header.bytes_per_token,
      .ids_offset = sizeof header,
      .header = header};
}

void check_shard_body(const OpenFile& file, const ShardHeader& header) {
  if (hash_of_file(file, sizeof header, header.file_bytes()) != header.body_hash)
    fail("{}: the shard was altered or damaged: its checksum is another", {file.path()});
}

}  // namespace ricci
