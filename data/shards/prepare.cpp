#include "data/shards/prepare.h"

#include <optional>

#include "core/error.h"
#include "core/files/checksum.h"
#include "data/text/utf8.h"
#include "data/tokenizers/char_tokenizer.h"

namespace ricci {
namespace {

// A hash of all that the bytes of the shards depend on.
uint64_t source_hash(const TextSource& files, const Tokenizer& tokenizer, const PrepareOptions& options) {
  const DocumentOptions& o = options.documents;
  std::string all = format_message("{} {} {} {} {} {}",
      {tokenizer.hash(), options.shard_tokens, name_of(o.format), name_of(files.encoding()), int(o.keep_line_ends), o.classes});
  for (const std::string& text : {o.documents, o.text_field, o.label_field}) all += format_message(" {}:", {text.size()}) + text;
  for (const std::string& label : o.labels) all += format_message(" {}:{}", {label.size(), label});
  for (const TextSource& file : files.each_file()) all += format_message(" {}", {file.content_hash()});
  return hash_bytes(all);
}

// The header of a shard; nothing where there is none that is sound.
std::optional<ShardHeader> find_header(const FilePlace& place, bool checks_body) {
  try {
    const std::optional<OpenFile> file = OpenFile::find(place);
    if (!file) return {};
    const ShardHeader header = read_shard_header(*file).header;
    if (checks_body) check_shard_body(*file, header);
    return header;
  } catch (const Error&) {  // it is made again
    return {};
  }
}

// Locks the folder. Errors: another program has the lock; a shard there is of something else, and could be overwritten.
void take(const Folder& folder, const ShardHeader& first) {
  if (!folder.lock()) fail("{}: another program is preparing shards in it", {folder.path()});
  for (const std::string& name : folder.names()) {
    const std::optional<ShardHeader> header = is_shard_name(name) ? find_header(FilePlace(folder, name), false) : std::nullopt;
    if (header && (header->source_hash != first.source_hash || header->tokenizer_hash != first.tokenizer_hash))
      fail("{}: holds shards of other inputs, settings or tokenizer; name another folder, or remove it", {folder.path()});
  }
}

// The shards that are kept, counted; returns the header of the last of them.
std::optional<ShardHeader> find_kept(const Folder& folder, Prepared& all) {
  std::optional<ShardHeader> last;
  while (const std::optional<ShardHeader> header = find_header(FilePlace(folder, shard_name(all.found)), true)) {
    all.add(*header);
    ++all.found;
    last = header;
    if (header->is_last) break;
  }
  return last;
}

}  // namespace

void write_tokenizer(const Folder& folder, const Tokenizer& tokenizer) {
  const FilePlace place(folder, "tokenizer.json");
  const std::string json = tokenizer.to_json();
  if (!OpenFile::find(place)) return static_cast<void>(write_file_atomically(place, json));
  if (read_text(place, kMaxTokenizer) != json) fail("{}: another tokenizer is there; name another folder, or remove it", {place.path});
}

std::shared_ptr<const Tokenizer> char_tokenizer_of(const TextSource& files, const DocumentOptions& options) {
  DocumentReader reader(files, options, complete_utf8_prefix);
  CharacterSet characters;
  for (DocumentPiece piece; reader.next(piece);) {
    try {
      characters.add(piece.text, piece.first_byte);
    } catch (const Error& error) {
      fail("{}: {}", {piece.place, error.what()});
    }
  }
  return std::make_shared<CharTokenizer>(characters.sorted());
}

Prepared prepare_shards(const TextSource& files, const Tokenizer& tokenizer, const Folder& folder, const PrepareOptions& options,
    const std::function<void(const PrepareProgress&)>& progress) {
  if (options.shard_tokens < 1) fail("shard_tokens: {}, expected 1 or more", {options.shard_tokens});
  const int64_t classes = options.documents.classes;
  ShardHeader first = header_of(tokenizer, source_hash(files, tokenizer, options), classes);
  Prepared all;
  take(folder, first);
  remove_abandoned_files(folder);
  const std::optional<ShardHeader> last = find_kept(folder, all);
  write_tokenizer(folder, tokenizer);
  if (last && last->is_last) return all;
  first.number = all.found;
  DocumentReader reader(
      files, options.documents, [&](std::string_view text) { return tokenizer.complete_prefix(text); }, last ? last->end : InputPlace());
  write_shards(reader, files, tokenizer, folder, first, {options.shard_tokens, classes > 0}, all, progress);
  return all;
}

}  // namespace ricci
