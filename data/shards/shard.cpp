#include "data/shards/shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "core/error.h"
#include "core/files/checksum.h"
#include "data/shards/pieces.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "ids and headers are written as they are in memory");

namespace {

// A shard of llm.c for one kind of tokenizer.
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

std::string shard_name(int64_t number) { return format_message("shard-{:05}.tokens", {number}); }

bool is_shard_name(std::string_view name) { return name.starts_with("shard-") && name.ends_with(".tokens"); }

void Prepared::add(const ShardHeader& written) {
  ++shards;
  tokens += written.tokens;
  text_bytes += written.text_bytes;
  documents += written.documents - written.goes_on;
}

ShardHeader header_of(const Tokenizer& tokenizer, uint64_t source_hash, int64_t classes) {
  ShardHeader first;
  first.vocab_size = tokenizer.vocab_size();
  first.bytes_per_token = first.vocab_size <= 65536 ? 2 : 4;
  first.tokenizer_hash = tokenizer.hash();
  first.source_hash = source_hash;
  first.classes = classes;
  return first;
}

namespace {

// Appends ids as a shard holds them.
template <class Id> void pack(std::span<const int64_t> ids, std::string& packed) {
  const size_t before = packed.size();
  packed.resize(before + ids.size() * sizeof(Id));
  char* target = packed.data() + before;
  for (const int64_t id : ids) {
    const auto narrow = static_cast<Id>(id);
    std::memcpy(target, &narrow, sizeof narrow);
    target += sizeof narrow;
  }
}

// Collects packed ids and documents until a shard is full, and writes it.
class ShardWriter {
 public:
  ShardWriter(const Folder& folder, const ShardHeader& first, const ShardOptions& options, Prepared& all)
      : folder_(folder), next_(first), options_(options), all_(all) {}

  // The rest of a document whose start is in the shard before is listed as a document of this shard, under the same label.
  void append(const DocumentPiece& piece, bool is_first, std::span<const int64_t> ids) {
    if (is_first) end_full_shard();
    const bool starts = is_first && piece.starts;
    if (starts && options_.first_documents > 0 && documents_++ == options_.first_documents) {
      write(false);
      all_.first_shards = all_.shards;
    }
    starts_document_ |= starts;
    all_.empty_documents += starts;
    if (!ids.empty()) {
      if (!starts_document_ && ids_.empty()) next_.goes_on = 1;
      if (starts_document_ || ids_.empty()) {
        starts_.push_back(static_cast<uint64_t>(held()));
        labels_.push_back(piece.label);
      }
      all_.empty_documents -= starts_document_;
      starts_document_ = false;
      next_.bytes_per_token == 2 ? pack<uint16_t>(ids, ids_) : pack<uint32_t>(ids, ids_);
    }
    if (is_first) next_.text_bytes += static_cast<int64_t>(piece.text.size());
    next_.end = piece.end;
    may_end_ = piece.ends || !options_.whole_documents;
  }

  // After the last document. Error: there are no tokens; named by `inputs`.
  void finish(const std::string& inputs) {
    end_full_shard();
    if (tokens() == 0) fail("{}: the inputs hold no tokens", {inputs});
    write(true);
  }
  int64_t tokens() const { return all_.tokens + held(); }

 private:
  int64_t held() const { return static_cast<int64_t>(ids_.size()) / next_.bytes_per_token; }
  void end_full_shard() {
    if (may_end_ && held() >= options_.shard_tokens) write(false);
  }
  void write(bool is_last);

  const Folder& folder_;
  ShardHeader next_;
  const ShardOptions& options_;
  Prepared& all_;
  std::string ids_;
  std::vector<uint64_t> starts_;
  std::vector<int32_t> labels_;
  int64_t documents_ = 0;
  bool starts_document_ = false;  // with the next ids, as those before gave none
  bool may_end_ = false;
};

void ShardWriter::write(bool is_last) {
  next_.tokens = held();
  next_.documents = static_cast<int64_t>(starts_.size());
  next_.is_last = is_last;
  ids_.resize(static_cast<size_t>(next_.index_offset()) - sizeof next_, '\0');
  const std::string_view labels = next_.classes > 0 ? bytes_of(labels_) : std::string_view();
  BlockHash hash;
  for (const std::string_view part : {std::string_view(ids_), bytes_of(starts_), labels}) hash.add(part);
  next_.body_hash = hash.finish();
  next_.own_hash = next_.hash();
  write_file_atomically(FilePlace(folder_, shard_name(next_.number)), [&](FileWriter& file) {
    for (const std::string_view part : {bytes_of(std::span(&next_, 1)), std::string_view(ids_), bytes_of(starts_), labels})
      file.write(part);
  });
  all_.add(next_);
  ids_.clear();
  starts_.clear();
  labels_.clear();
  ++next_.number;
  next_.text_bytes = 0;
  next_.goes_on = 0;
}

}  // namespace

void write_shards(PieceReader& reader, const TextSource& files, const Tokenizer& tokenizer, const Folder& folder, const ShardHeader& first,
    const ShardOptions& options, Prepared& all, const std::function<void(const PrepareProgress&)>& progress) {
  ShardWriter writer(folder, first, options, all);
  for_each_encoded(
      reader, tokenizer,
      [&](const DocumentPiece& piece, bool is_first, std::span<const int64_t> ids) { writer.append(piece, is_first, ids); },
      [&](int64_t bytes_of_files) {
        if (progress) progress({bytes_of_files, writer.tokens()});
      });
  files.check_unchanged();
  writer.finish(files.name());
}

namespace {

constexpr size_t kMaxOpen = 64;  // the system limits open files

// Widens packed ids; returns where the first is that is outside of the vocabulary, or -1.
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

std::shared_ptr<const OpenFile> ShardFiles::open(size_t number) {
  const auto& [path, layout, held] = shards_[number];
  if (held) return held;
  const std::lock_guard lock(mutex_);
  if (const auto known = open_.find(number); known != open_.end()) return known->second;
  if (open_.size() >= kMaxOpen) open_.clear();
  const auto file = std::make_shared<const OpenFile>(path);
  const ShardLayout now = read_shard_header(*file);
  if (now.tokens != layout.tokens || now.header.own_hash != layout.header.own_hash || now.bytes_per_token != layout.bytes_per_token)
    fail("{}: the shard changed while it was in use", {path});
  if (layout.is_prepared && !checked_[number]) check_shard_body(*file, layout.header);
  checked_[number] = true;
  return open_[number] = file;
}

void ShardFiles::read(size_t number, void* target, size_t bytes, int64_t offset) {
  if (open(number)->read(target, bytes, offset) < bytes) fail("{}: the shard was cut short while it was in use", {shards_[number].path});
}

// The packed ids go to the end of the target and are widened from the front, where none is overwritten unread.
void ShardFiles::read(size_t number, int64_t first, std::span<int64_t> ids, int64_t vocab_size) {
  const auto& [path, layout, held] = shards_[number];
  const size_t bytes = ids.size() * static_cast<size_t>(layout.bytes_per_token);
  char* const packed = reinterpret_cast<char*>(ids.data()) + ids.size_bytes() - bytes;
  read(number, packed, bytes, layout.ids_offset + first * layout.bytes_per_token);
  const int64_t wrong = layout.bytes_per_token == 2 ? widen<uint16_t>(packed, ids, vocab_size) : widen<uint32_t>(packed, ids, vocab_size);
  if (wrong >= 0)
    fail("{}: id {} of token {} is outside the vocabulary of {}", {path, ids[static_cast<size_t>(wrong)], first + wrong, vocab_size});
}

TokenSpan ShardFiles::document(size_t number, int64_t document) {
  const auto& [path, layout, held] = shards_[number];
  const ShardHeader& header = layout.header;
  const bool is_last = document + 1 == header.documents;
  std::array<uint64_t, 2> starts = {0, static_cast<uint64_t>(layout.tokens)};
  read(number, starts.data(), is_last ? 8 : 16, header.index_offset() + document * 8);
  const bool first_is_sound = starts[0] < static_cast<uint64_t>(layout.tokens) && (document > 0 || starts[0] == 0);
  if (!first_is_sound) fail("{}: document {} of the shard starts at token {} of {}", {path, document, starts[0], layout.tokens});
  if (!is_last && starts[1] >= static_cast<uint64_t>(layout.tokens))
    fail("{}: document {} of the shard starts at token {} of {}", {path, document + 1, starts[1], layout.tokens});
  if (starts[1] <= starts[0]) fail("{}: document {} of the shard ends before it starts", {path, document});
  return {static_cast<int64_t>(starts[0]), static_cast<int64_t>(starts[1])};
}

int64_t ShardFiles::label(size_t number, int64_t document) {
  const auto& [path, layout, held] = shards_[number];
  const int64_t classes = layout.header.classes;
  if (classes == 0) return -1;
  int32_t label = 0;
  read(number, &label, sizeof label, layout.header.labels_offset() + document * 4);
  if (label < 0 || label >= classes) fail("{}: label {} of document {} is not one of {} classes", {path, label, document, classes});
  return label;
}

}  // namespace ricci
