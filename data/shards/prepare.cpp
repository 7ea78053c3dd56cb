#include "data/shards/prepare.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/choice.h"
#include "core/cpu/parallel.h"
#include "core/cpu/prefetch.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "core/json.h"

namespace ricci {
namespace {

// ---- Writing
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

// Collects packed ids and documents, and writes each full shard.
class ShardWriter {
 public:
  // `first` is the header of the first shard to write, without the numbers of tokens and documents.
  ShardWriter(const std::string& folder, const ShardHeader& first, bool divides_documents, const PrepareOptions& options, Prepared& all)
      : folder_(folder), next_(first), options_(options), divides_documents_(divides_documents), all_(all) {}

  // A document that continues from the previous shard is listed again in this shard, with the same label.
  void append(const DocumentPiece& piece, std::span<const int64_t> ids, const std::vector<bool>& counts = {}) {
    if (is_full() || (piece.after_cut && !next_.after_cut && is_pending_)) write(false);
    next_.after_cut = piece.after_cut;
    starts_document_ |= piece.starts;
    all_.empty_documents += piece.starts;
    if (!ids.empty()) append_ids(piece, ids, counts);
    next_.text_bytes += static_cast<int64_t>(piece.text.size());
    next_.end = piece.end;
    can_end_ = piece.ends || divides_documents_;
    is_pending_ = true;
  }

  // Error: the inputs, named by `inputs`, have no tokens.
  void finish(const std::string& inputs) {
    if (is_full()) write(false);
    if (tokens() == 0) fail("{}: the inputs contain no tokens", {inputs});
    write(true);
  }
  int64_t tokens() const { return all_.tokens + held(); }

 private:
  int64_t held() const { return static_cast<int64_t>(ids_.size()) / next_.bytes_per_token; }
  bool is_full() const { return can_end_ && held() >= options_.shard_tokens + next_.number * options_.growth; }

  void append_ids(const DocumentPiece& piece, std::span<const int64_t> ids, const std::vector<bool>& counts) {
    if (!starts_document_ && ids_.empty()) next_.first_document_continues = 1;
    if (starts_document_ || ids_.empty()) {
      starts_.push_back(static_cast<uint64_t>(held()));
      labels_.push_back(piece.label);
    }
    all_.empty_documents -= starts_document_;
    starts_document_ = false;
    const auto before = static_cast<size_t>(held());
    next_.bytes_per_token == 2 ? pack<uint16_t>(ids, ids_) : pack<uint32_t>(ids, ids_);
    if (!next_.has_mask()) return;
    mask_.resize((before + ids.size() + 63) / 64);
    for (size_t i = 0; i < ids.size(); ++i)
      if (counts.empty() || counts[i]) mask_[(before + i) / 64] |= uint64_t{1} << (before + i) % 64;
  }

  void write(bool is_last) {
    next_.tokens = held();
    next_.documents = static_cast<int64_t>(starts_.size());
    next_.is_last = is_last;
    ids_.resize(static_cast<size_t>(next_.mask_offset()) - sizeof next_, '\0');
    ids_.append(bytes_of(mask_)).append(bytes_of(starts_));
    if (next_.classes > 0) ids_.append(bytes_of(labels_));
    next_.body_hash = hash_of_blocks(ids_);
    next_.own_hash = next_.hash();
    write_atomically(folder_ + "/" + shard_name(next_.number), [&](FileWriter& file) {
      file.write(bytes_of(std::span(&next_, 1)));
      file.write(ids_);
    });
    all_.add(next_);
    ids_.clear();
    mask_.clear();
    starts_.clear();
    labels_.clear();
    ++next_.number;
    next_.text_bytes = 0;
    next_.first_document_continues = 0;
    is_pending_ = false;
  }

  const std::string& folder_;
  ShardHeader next_;
  const PrepareOptions& options_;
  bool divides_documents_;  // two shards can share a document of a text, but not a record: split() would count the record twice
  Prepared& all_;
  std::string ids_;
  std::vector<uint64_t> mask_, starts_;
  std::vector<int32_t> labels_;
  bool starts_document_ = false;  // the next ids are the first of their document
  bool can_end_ = false, is_pending_ = false;
};

// ---- Encoding
// Pieces are encoded together until one of these limits is reached. An id needs eight bytes of memory, and each byte of text can become an
// id.
constexpr size_t kMinBytes = 512 << 10, kBytesPerThread = 64 << 10, kMaxPieces = 16384;

struct Pieces {
  std::vector<DocumentPiece> pieces;
  int64_t bytes_of_files = 0;
};

std::optional<Pieces> read_pieces(DocumentReader& reader, size_t most) {
  std::vector<DocumentPiece> pieces;
  DocumentPiece piece;
  for (size_t bytes = 0; bytes < most && pieces.size() < kMaxPieces && reader.next(piece); bytes += pieces.back().text.size())
    pieces.push_back(std::move(piece));
  if (pieces.empty()) return {};
  return Pieces{std::move(pieces), reader.bytes_of_files()};
}

std::vector<EncodedDocument> encode_lines(const std::vector<DocumentPiece>& lines, const DocumentEncoder& encoder) {
  constexpr int64_t kLines = 16;  // lines that a thread encodes at a time
  std::vector<EncodedDocument> encoded(lines.size());
  parallel_for(std::ssize(lines), kLines, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      encoded[i] = about(lines[i].place, [&] { return encoder(lines[i].text); });
  });
  return encoded;
}

// Encodes and appends all pieces of the reader.
void append_all(DocumentReader& reader, const Documents& documents, const std::shared_ptr<const Tokenizer>& tokenizer, ShardWriter& writer,
    const std::function<void(const PrepareProgress&)>& progress) {
  const FormatTraits& format = traits_of(documents.options.format);
  const DocumentEncoder encoder = format.encoder ? format.encoder(tokenizer, documents.options) : nullptr;
  const size_t bytes = std::max(kMinBytes, kBytesPerThread * static_cast<size_t>(thread_count()));
  Prefetch<Pieces> read_ahead([&] { return read_pieces(reader, bytes); });
  while (const std::optional<Pieces> read = read_ahead.next()) {
    auto piece = read->pieces.begin();
    if (encoder)
      for (const EncodedDocument& document : encode_lines(read->pieces, encoder)) writer.append(*piece++, document.ids, document.counts);
    else
      for (const std::vector<int64_t>& ids : encode(*tokenizer, read->pieces)) writer.append(*piece++, ids);
    if (progress) progress({read->bytes_of_files, writer.tokens()});
  }
}

// ---- Resuming in a folder
// The header of a shard; nullopt if the shard is missing or damaged.
std::optional<ShardHeader> find_header(const std::string& path, bool checks_body) {
  try {
    const ShardFile file(path);
    if (checks_body) file.check_body();
    return file.header();
  } catch (const Error&) {  // the shard will be written again
    return {};
  }
}

// Counts the intact shards and returns the header of the last one. Error: a shard has different inputs or settings.
std::optional<ShardHeader> find_shards(const std::string& folder, const ShardHeader& ours, bool replaces, Prepared& all) {
  for (const std::string& name : names_in(folder)) {
    if (!is_shard_name(name)) continue;
    const std::string path = folder + "/" + name;
    const std::optional<ShardHeader> header = find_header(path, false);
    const bool is_ours = header && header->source_hash == ours.source_hash && header->tokenizer_hash == ours.tokenizer_hash;
    if (replaces && !(is_ours && name == shard_name(header->number))) remove_file(path);
    else if (header && !is_ours) fail("{}: contains shards with different inputs, settings or tokenizers; choose another folder", {folder});
  }
  std::optional<ShardHeader> last;
  while (!last || !last->is_last) {
    const std::optional<ShardHeader> header = find_header(folder + "/" + shard_name(all.found), true);
    if (!header) break;
    all.add(*header);
    ++all.found;
    last = header;
  }
  return last;
}

void write_tokenizer(const std::string& folder, const Tokenizer& tokenizer, bool replaces) {
  const std::string path = folder + "/tokenizer.json", json = tokenizer.to_json();
  const std::optional<File> file = File::find(path);
  if (file && file->size() <= kMaxTokenizer && read_text(path, kMaxTokenizer) == json) return;
  if (file && !replaces) fail("{}: a different tokenizer already exists here; choose another folder", {path});
  write_atomically(path, json);
}

}  // namespace

void Prepared::add(const ShardHeader& written) {
  ++shards;
  tokens += written.tokens;
  text_bytes += written.text_bytes;
  documents += written.documents - written.first_document_continues;
}

uint64_t hash_of(const DocumentOptions& o) {
  std::string all = format_message("{} {} {}", {name_of(o.format), int(o.keep_line_ends), o.classes});
  for (const std::vector<std::string>& list : {{o.documents, o.text_field, o.label_field}, o.labels, o.chat})
    for (const std::string& each : list) all += format_message(" {}:{}", {each.size(), each});
  return hash_bytes(all);
}

uint64_t hash_inputs(const Documents& documents, const Tokenizer& tokenizer, int64_t shard_tokens) {
  const uint64_t options = hash_of(documents.options);
  const std::string all = format_message("{} {} {} {}", {tokenizer.hash(), shard_tokens, name_of(documents.files.encoding()), options});
  return hash_bytes(all, documents.files.content_hash());
}

Prepared prepare_shards(const Documents& documents, const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& folder,
    const PrepareOptions& options) {
  if (options.shard_tokens < 1) fail("shard_tokens: {}, expected 1 or more", {options.shard_tokens});
  ShardHeader next;
  next.version = traits_of(documents.options.format).has_mask() ? 2 : 1;
  next.vocab_size = tokenizer->vocab_size();
  next.bytes_per_token = next.vocab_size <= 65536 ? 2 : 4;
  next.tokenizer_hash = tokenizer->hash();
  next.source_hash = options.source_hash;
  next.classes = documents.options.classes;
  Prepared all;
  const std::optional<FolderLock> lock = options.replaces ? std::nullopt : FolderLock::take(folder);
  if (!lock && !options.replaces) fail("{}: another program is preparing shards in this folder", {folder});
  remove_temporaries(folder);
  const std::optional<ShardHeader> last = find_shards(folder, next, options.replaces, all);
  write_tokenizer(folder, *tokenizer, options.replaces);
  const std::vector<std::string>& labels = documents.options.labels;
  if (!labels.empty()) write_atomically(folder + "/labels.json", to_text({{"labels", labels}}) + "\n");
  if (last && last->is_last) return all;
  next.number = all.found;
  ShardWriter writer(folder, next, documents.is_text(), options, all);
  DocumentReader reader(
      documents, [&](std::string_view text) { return tokenizer->complete_prefix(text); }, last ? last->end : InputPlace());
  append_all(reader, documents, tokenizer, writer, options.progress);
  documents.files.check_unchanged();
  writer.finish(documents.files.name());
  return all;
}

}  // namespace ricci
