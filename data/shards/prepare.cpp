#include "data/shards/prepare.h"

#include <optional>

#include "core/error.h"
#include "core/files/checksum.h"
#include "data/shards/shard_writer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/utf8.h"

namespace ricci {
namespace {

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
  all.tokens += header.tokens;
  all.text_bytes += header.text_bytes;
  all.documents += header.documents - header.goes_on;
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

// Cuts the ids of documents into shards.
class ShardCutter {
 public:
  ShardCutter(const Folder& folder, const ShardHeader& first, const ShardOptions& options, Prepared& all)
      : writer_(folder, first), options_(options), all_(all) {}

  void append(const DocumentPiece& piece, bool is_first, std::span<const int64_t> ids) {
    if (is_first) end_full_shard();
    if (is_first && piece.starts && documents_++ == options_.first_documents && options_.first_documents > 0) {
      write(false);
      all_.first_shards = all_.shards;
    }
    writer_.append(ids, is_first && piece.starts, piece.label, is_first ? static_cast<int64_t>(piece.text.size()) : 0, piece.end);
    may_end_ = piece.ends || !options_.whole_documents;
  }
  // Behind the last document. Error: there are no tokens; named by `inputs`.
  void finish(const std::string& inputs) {
    end_full_shard();
    if (tokens() == 0) fail("{}: the inputs hold no tokens", {inputs});
    write(true);
  }
  int64_t tokens() const { return all_.tokens + writer_.tokens(); }

 private:
  void end_full_shard() {
    if (may_end_ && writer_.tokens() >= options_.shard_tokens) write(false);
  }
  void write(bool is_last) { count(all_, writer_.write(is_last)); }

  ShardWriter writer_;
  const ShardOptions& options_;
  Prepared& all_;
  int64_t documents_ = 0;
  bool may_end_ = false;
};

}  // namespace

ShardHeader header_of(const Tokenizer& tokenizer, uint64_t source_hash, int64_t classes) {
  ShardHeader first;
  first.vocab_size = tokenizer.vocab_size();
  first.bytes_per_token = static_cast<uint32_t>(bytes_per_token(first.vocab_size));
  first.tokenizer_hash = tokenizer.hash();
  first.source_hash = source_hash;
  first.classes = classes;
  return first;
}

void write_shards(PieceReader& reader, const std::vector<TextSource>& files, const Tokenizer& tokenizer, const Folder& folder,
    const ShardHeader& first, const ShardOptions& options, Prepared& all, const std::function<void(const PrepareProgress&)>& progress) {
  ShardCutter cutter(folder, first, options, all);
  for_each_encoded(
      reader, tokenizer,
      [&](const DocumentPiece& piece, bool is_first, std::span<const int64_t> ids) { cutter.append(piece, is_first, ids); },
      [&](int64_t bytes_of_files) {
        if (progress) progress({bytes_of_files, cutter.tokens()});
      });
  for (const TextSource& file : files) file.check_unchanged();
  cutter.finish(names_of(files));
}

void write_tokenizer(const Folder& folder, const Tokenizer& tokenizer) {
  const FilePlace place(folder, "tokenizer.json");
  const std::string json = tokenizer.to_json();
  if (!OpenFile::find(place)) return static_cast<void>(write_file_atomically(place, json));
  if (read_text(place, kMaxTokenizer) != json) fail("{}: another tokenizer is there; name another folder, or remove it", {place.path});
}

std::shared_ptr<const Tokenizer> char_tokenizer_of(const std::vector<TextSource>& files, const DocumentOptions& options) {
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

Prepared prepare_shards(const std::vector<TextSource>& files, const Tokenizer& tokenizer, const Folder& folder,
    const PrepareOptions& options, const std::function<void(const PrepareProgress&)>& progress) {
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
