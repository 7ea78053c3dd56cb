#include "data/shards/prepare.h"

#include <optional>

#include "core/error.h"
#include "core/files/checksum.h"

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

class PackedIds final : public Tokenizer {
 public:
  explicit PackedIds(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  std::string name() const override { return tokenizer_->name(); }
  int64_t vocab_size() const override { return tokenizer_->vocab_size(); }
  std::string model_json() const override { return tokenizer_->to_json(); }

 protected:
  std::string hashed_model_json() const override { return tokenizer_->hashed_json(); }
  size_t model_prefix(std::string_view bytes) const override { return bytes.size() / 2 * 2; }
  void append_model_ids(std::string_view bytes, int64_t offset, std::vector<int64_t>& ids) const override {
    if (bytes.size() % 2) fail("ids of two bytes each, but there are {} bytes", {offset + std::ssize(bytes)});
    for (size_t i = 0; i < bytes.size(); i += 2) {
      ids.push_back(static_cast<unsigned char>(bytes[i]) | static_cast<unsigned char>(bytes[i + 1]) << 8);
      if (ids.back() >= vocab_size())
        fail("id {} at byte {} is outside the vocabulary of {}", {ids.back(), offset + static_cast<int64_t>(i), vocab_size()});
    }
  }
  void append_text(int64_t id, DecodeState&, std::string& bytes) const override {
    bytes.append({static_cast<char>(id & 0xff), static_cast<char>(id >> 8)});
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

std::shared_ptr<const Tokenizer> reader_of_ids(std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_shared<PackedIds>(std::move(tokenizer));
}

void write_tokenizer(const Folder& folder, const Tokenizer& tokenizer) {
  const FilePlace place(folder, "tokenizer.json");
  const std::string json = tokenizer.to_json();
  if (!OpenFile::find(place)) return static_cast<void>(write_file_atomically(place, json));
  if (read_text(place, kMaxTokenizer) != json) fail("{}: another tokenizer is there; name another folder, or remove it", {place.path});
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
