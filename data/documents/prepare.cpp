#include "data/documents/prepare.h"

#include <cstring>
#include <optional>

#include "core/cpu/first_error.h"
#include "core/error.h"
#include "core/files/hash.h"
#include "data/shards/shard_writer.h"
#include "data/stream/prefetch.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/utf8.h"

namespace ricci {
namespace {

constexpr size_t kBatchBytes = 4 << 20, kBatchPieces = 16384;  // whichever is reached first
constexpr size_t kBatchesAhead = 2;
constexpr int64_t kGrain = 16;  // pieces

struct Batch {
  std::vector<DocumentPiece> pieces;
  int64_t bytes_of_files = 0;
};

std::optional<Batch> read_batch(DocumentReader& reader) {
  Batch batch;
  DocumentPiece piece;
  for (size_t bytes = 0; bytes < kBatchBytes && batch.pieces.size() < kBatchPieces && reader.next(piece);
       bytes += batch.pieces.back().text.size())
    batch.pieces.push_back(std::move(piece));
  batch.bytes_of_files = reader.bytes_of_files();
  if (batch.pieces.empty()) return {};
  return batch;
}

// The ids of a piece, as a shard holds them.
void encode(const DocumentPiece& piece, const Tokenizer& tokenizer, std::vector<int64_t>& ids, std::string& packed) {
  ids.clear();
  try {
    tokenizer.append_ids(piece.text, piece.first_byte, ids);
    if (piece.ends) tokenizer.append_end(piece.text, ids);
  } catch (const Error& error) {
    fail("{}: {}", {piece.place, error.what()});
  }
  const auto width = static_cast<size_t>(bytes_per_token(tokenizer.vocab_size()));
  packed.resize(ids.size() * width);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<uint32_t>(ids[i]);
    std::memcpy(packed.data() + i * width, &id, width);
  }
}

std::vector<std::string> encode(const Batch& batch, const Tokenizer& tokenizer) {
  std::vector<std::string> packed(batch.pieces.size());
  parallel_for_first_error(static_cast<int64_t>(packed.size()), kGrain, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> ids;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) encode(batch.pieces[i], tokenizer, ids, packed[i]);
  });
  return packed;
}

// What the bytes of the shards depend on.
uint64_t source_hash(const std::vector<TextSource>& files, const Tokenizer& tokenizer, const PrepareOptions& options) {
  const DocumentOptions& o = options.documents;
  std::string all = format_message("{} {} {} {} {} {}",
      {tokenizer.hash(), options.shard_tokens, name_of(o.format), name_of(o.encoding), int(o.keep_line_ends), o.classes});
  for (const std::string& text : {o.documents, o.text_field, o.label_field}) all += format_message(" {}:", {text.size()}) + text;
  for (const TextSource& file : files) all += format_message(" {}", {file.content_hash()});
  return hash_bytes(all);
}

// "a.txt", "a.txt and 2 more"
std::string names_of(const std::vector<TextSource>& files) {
  const std::string first = files.empty() ? "no files" : files[0].name();
  return files.size() < 2 ? first : format_message("{} and {} more", {first, files.size() - 1});
}

// The header of a sound shard; nothing where there is none.
std::optional<ShardHeader> find_sound(const Folder& folder, int64_t number) {
  try {
    const std::optional<OpenFile> file = OpenFile::find(FilePlace(folder, shard_name(number)));
    if (!file) return {};
    const ShardHeader header = read_shard_header(*file).header;
    check_shard_body(*file, header);
    return header;
  } catch (const Error&) {  // it is made again
    return {};
  }
}

void count(Prepared& all, const ShardHeader& header) {
  ++all.shards;
  all.tokens += header.tokens, all.text_bytes += header.text_bytes, all.documents += header.documents - header.goes_on;
}

// The header of a file; nothing where it has none that is sound.
std::optional<ShardHeader> find_header(const FilePlace& place) {
  try {
    return read_shard_header(OpenFile(place)).header;
  } catch (const Error&) {
    return {};
  }
}

// Locks the folder. Errors: another program has the lock; a shard there is of something else, and could be overwritten.
void take(const Folder& folder, const ShardHeader& first) {
  if (!folder.lock()) fail("{}: another program is preparing shards in it", {folder.path()});
  for (const std::string& name : folder.names()) {
    const std::optional<ShardHeader> header = is_shard_name(name) ? find_header(FilePlace(folder, name)) : std::nullopt;
    if (header && (header->source_hash != first.source_hash || header->tokenizer_hash != first.tokenizer_hash))
      fail("{}: holds shards of other inputs, settings or tokenizer; name another folder, or remove it", {folder.path()});
  }
}

// The shards that are kept, counted; returns the header of the last of them.
std::optional<ShardHeader> find_kept(const Folder& folder, Prepared& all) {
  std::optional<ShardHeader> last;
  while (const std::optional<ShardHeader> header = find_sound(folder, all.found)) {
    count(all, *header);
    ++all.found;
    last = header;
    if (header->is_last) break;
  }
  return last;
}

void write_tokenizer(const Folder& folder, const Tokenizer& tokenizer) {
  const FilePlace place(folder, "tokenizer.json");
  const std::string json = tokenizer.to_json();
  if (!OpenFile::find(place)) return static_cast<void>(write_file_atomically(place, json));
  if (read_text(place, kMaxTokenizer) != json) fail("{}: another tokenizer is there; name another folder, or remove it", {place.path});
}

}  // namespace

std::shared_ptr<const Tokenizer> char_tokenizer_of(const std::vector<TextSource>& files, const DocumentOptions& options) {
  DocumentReader reader(files, options, complete_utf8_prefix);
  std::vector<bool> found(kLargestCodePoint + 1);
  for (DocumentPiece piece; reader.next(piece);) {
    for (size_t at = 0; at < piece.text.size();) {
      const Utf8Character character = decode_utf8(piece.text, at);
      if (character.bytes == 0)
        fail("{}: byte {} is not valid UTF-8, and no character", {piece.place, piece.first_byte + static_cast<int64_t>(at)});
      found[character.code] = true;
      at += character.bytes;
    }
  }
  std::string characters;
  for (char32_t code = 0; code <= kLargestCodePoint; ++code)
    if (found[code]) append_utf8(code, characters);
  return std::make_shared<CharTokenizer>(characters);
}

Prepared prepare_shards(const std::vector<TextSource>& files, const Tokenizer& tokenizer, const Folder& folder,
    const PrepareOptions& options, const std::function<void(const PrepareProgress&)>& progress) {
  if (options.shard_tokens < 1) fail("shard_tokens: {}, expected 1 or more", {options.shard_tokens});
  ShardHeader first;
  first.vocab_size = tokenizer.vocab_size();
  first.bytes_per_token = static_cast<uint32_t>(bytes_per_token(first.vocab_size));
  first.tokenizer_hash = tokenizer.hash();
  first.source_hash = source_hash(files, tokenizer, options);
  first.classes = options.documents.classes;
  Prepared all;
  take(folder, first);
  remove_abandoned_files(folder);
  const std::optional<ShardHeader> last = find_kept(folder, all);
  write_tokenizer(folder, tokenizer);
  if (last && last->is_last) return all;

  first.number = all.found;
  DocumentReader reader(
      files, options.documents, [&](std::string_view text) { return tokenizer.complete_prefix(text); }, last ? last->end : InputPlace());
  Prefetch<Batch> batches([&] { return read_batch(reader); }, kBatchesAhead);
  ShardWriter writer(folder, first);
  const auto write = [&](bool is_last) { count(all, writer.write(is_last)); };
  while (const std::optional<Batch> batch = batches.next()) {
    const std::vector<std::string> packed = encode(*batch, tokenizer);
    for (size_t i = 0; i < packed.size(); ++i) {
      const DocumentPiece& piece = batch->pieces[i];
      writer.append(packed[i], piece.starts, piece.label, static_cast<int64_t>(piece.text.size()), piece.end);
      const bool may_end = piece.ends || options.documents.classes == 0;  // under a label a document stays whole
      if (may_end && writer.tokens() >= options.shard_tokens) write(false);
    }
    if (progress) progress({batch->bytes_of_files, all.tokens + writer.tokens()});
  }
  if (all.tokens + writer.tokens() == 0) fail("{}: the inputs hold no tokens", {names_of(files)});
  for (const TextSource& file : files) file.check_unchanged();
  write(true);
  return all;
}

}  // namespace ricci
