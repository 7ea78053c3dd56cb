// A store is a folder of prepared shards in the cache. Its name starts with a hash of what was asked for and ends with random digits, so
// that several programs may make one at the same time; it is complete when a file describes it.
#include "data/shards/store.h"

#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/files/file.h"
#include "data/shards/document_reader.h"
#include "data/shards/prepare.h"
#include "data/shards/tokens.h"
#include "data/text/utf8.h"
#include "data/tokenizers/char_tokenizer.h"

namespace ricci {

std::string default_cache_folder() {
  if (const char* chosen = std::getenv("RICCI_CACHE"); chosen && *chosen) return chosen;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/ricci";  // the XDG standard ignores relative paths
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/ricci" : "";
}

namespace {

namespace fs = std::filesystem;
constexpr const char* kDescription = "description";
constexpr int64_t kMaxDescription = 4096;
constexpr int64_t kMinShard = 4 << 20;  // tokens
constexpr int64_t kMaxShards = 64;      // about; all of them stay open

bool is_text(const StoreSource& source) { return traits_of(source.documents.format).is_text(); }

// ---- The identity of a store
struct StoreKey {
  std::string place;    // the request and its files: the tokens of a changed file replace the old ones
  uint64_t stamp = 0;   // whether the files are as they were
  bool settled = true;  // whether the stamp will show that
};

std::string options_of(const StoreSource& source) {
  const DocumentOptions& o = source.documents;
  std::string text = format_message("{} {} {} {}:{}{}:{}",
      {name_of(o.format), source.train_fraction, o.classes, o.text_field.size(), o.text_field, o.label_field.size(), o.label_field});
  for (const std::string& label : o.labels) text += format_message(" {}:{}", {label.size(), label});
  return text;
}

// made_of: the sources that the tokenizer is made of; none where it is given, and `tokenizer` is its hash.
StoreKey key_of(const StoreSource& source, const std::string& tokenizer, const std::vector<StoreSource>& made_of) {
  uint64_t place = hash_bytes(options_of(source), hash_bytes(tokenizer, source.files.place_hash())), stamp = source.files.stamp_hash();
  bool settled = source.files.is_settled();
  for (const StoreSource& each : made_of) {
    place = hash_bytes(format_message("{}", {each.files.place_hash()}), hash_bytes(options_of(each), place));
    stamp = hash_bytes(format_message("{}", {each.files.stamp_hash()}), stamp);
    settled &= each.files.is_settled();
  }
  return {format_message("shards-{:016x}-", {place}), stamp, settled};
}

// The file that describes a store.
struct Description {
  uint64_t stamp = 0, shards = 0;  // its files'; ShardedTokens::hash
  int64_t first_shards = 0, cut = 0, empty_documents = 0;
  uint64_t train = 0, validation = 0;  // hashes of their tokens
};

std::string text_of(const Description& d) {
  const std::string text =
      format_message("5 {} {} {} {} {} {} {}", {d.stamp, d.shards, d.first_shards, d.cut, d.empty_documents, d.train, d.validation});
  return text + format_message(" {}\n", {hash_bytes(text)});
}

std::optional<Description> read_description(const std::string& folder) {
  const std::string text = read_text(folder + "/" + kDescription, kMaxDescription);
  std::istringstream words(text);
  int version = 0;
  Description d;
  words >> version >> d.stamp >> d.shards >> d.first_shards >> d.cut >> d.empty_documents >> d.train >> d.validation;
  return words && text == text_of(d) ? std::optional(d) : std::nullopt;
}

// ---- The folder of a store that is being made
// Removes a folder that no draft holds any more.
void remove_unlocked(const std::string& path) {
  try {
    std::error_code ignored;
    if (const Folder folder(path); folder.lock()) fs::remove_all(path, ignored);
  } catch (const Error&) {  // another program has removed it
  }
}

Folder start(const Folder& base, const std::string& place) {
  for (;;) {
    const Folder made = base.make(place + random_digits());
    if (made.lock() && !made.removed()) return made;  // else another program took it for one that a killed program left
  }
}

// A folder that the user names has the usual rights, so that others can use it as well; the others are for this user only.
Folder start(const std::string& cache_folder, const std::string& place, std::string& fault) {
  try {
    const char* const named = std::getenv("RICCI_CACHE");
    if (!cache_folder.empty()) {
      make_folders(cache_folder, named && cache_folder == named ? 0777 : 0700);
      return start(Folder(cache_folder), place);
    }
  } catch (const Error& error) {
    fault = error.what();
  }
  const auto temporary = [&](const fs::path& path) {
    const Folder made = start(Folder(path.string()), place);
    ::fchmod(made.descriptor(), 0700);
    return made;
  };
  std::error_code error;
  const fs::path asked = fs::temp_directory_path(error);  // $TMPDIR, where that is a folder
  try {
    return temporary(error ? "/tmp" : asked);
  } catch (const Error&) {  // there is another
    return temporary("/var/tmp");
  }
}

// Locked, and removed at the end unless it is kept.
class Draft {
 public:
  // place: what the names of all stores start with that may take each other's place. In the cache folder, or, where that is empty or cannot
  // be used, in a folder for temporary files. Error: there is none.
  Draft(const std::string& cache_folder, const std::string& place) : place_(place), folder_(start(cache_folder, place, fault_)) {}
  ~Draft() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(folder_.path(), ignored);
  }
  Draft(const Draft&) = delete;

  const Folder& folder() const { return folder_; }
  const std::string& fault() const { return fault_; }  // why it is not in the cache folder; empty if it is, or no cache folder is given

  // Keeps it, and removes the ones that it replaces and the leftovers of killed programs.
  void keep(const std::string& cache_folder) {
    kept_ = true;
    for (const std::string& name : Folder(cache_folder).names())
      if (const std::string path = cache_folder + "/" + name; name.starts_with(place_) && path != folder_.path()) remove_unlocked(path);
  }

 private:
  std::string place_, fault_;
  bool kept_ = false;
  Folder folder_;
};

// ---- Opening
// The tokens after a description. Hashes that it lacks are computed here.
StoredSource stored(
    const ShardedTokens& all, const StoreSource& source, const std::shared_ptr<const Tokenizer>& tokenizer, Description& description) {
  const auto open = [&](const ShardedTokens& tokens, const TextSource& files, uint64_t& hash) -> Tokens {
    const ShardedTokens opened = tokens.as_one_shard(files.name(), is_text(source), hash);
    hash = opened.hash();
    return opened;
  };
  if (description.cut == 0) return {tokenizer, open(all, source.files, description.train), {}, 0, description.empty_documents};
  const auto [train, validation] = all.split_files(description.first_shards);
  return {tokenizer, open(train, source.files.as("train"), description.train),
      open(validation, source.files.as("validation"), description.validation), description.cut, description.empty_documents};
}

// Nothing where the folder holds no sound store of this stamp and tokenizer; any tokenizer where none is given.
std::optional<StoredSource> open_store(
    const std::string& folder, uint64_t stamp, const StoreSource& source, const std::shared_ptr<const Tokenizer>& given) {
  try {
    std::optional<Description> description = read_description(folder);
    if (!description || description->stamp != stamp) return {};
    const auto tokenizer = given ? given : tokenizer_of_shards(folder);
    const ShardedTokens all = ShardedTokens::hold(folder, *tokenizer);
    if (all.hash() != description->shards) return {};
    return stored(all, source, tokenizer, *description);
  } catch (const Error&) {  // it is made again
    return {};
  }
}

std::optional<StoredSource> find_store(
    const std::string& cache_folder, const StoreKey& key, const StoreSource& source, const std::shared_ptr<const Tokenizer>& given) {
  if (cache_folder.empty() || !key.settled) return {};
  try {
    std::optional<StoredSource> found;
    for (const std::string& name : Folder(cache_folder).names()) {
      if (!name.starts_with(key.place)) continue;
      const std::string folder = cache_folder + "/" + name;
      const bool is_one_of_two = found.has_value(), is_finished = is_there(folder + "/" + kDescription);
      if (!found) found = open_store(folder, key.stamp, source, given);
      if (is_one_of_two || !is_finished) remove_unlocked(folder);  // what a killed program left
    }
    return found;
  } catch (const Error&) {  // there is no cache folder yet, or it cannot be read
    return {};
  }
}

// ---- Making
// The character or document before which a source of this size is cut; 0 if it is not cut.
int64_t cut_of(const StoreSource& source, int64_t units) {
  if (source.train_fraction == 0) return 0;
  const auto train = static_cast<int64_t>(std::floor(static_cast<double>(units) * source.train_fraction));
  const bool possible = train >= 1 && train < units;
  if (!possible && is_text(source))
    fail("split: {} has {} characters, too few for a training fraction of {}", {source.files.name(), units, source.train_fraction});
  if (!possible) fail("{}: has {} documents, too few for a training fraction of {}", {source.files.name(), units, source.train_fraction});
  return train;
}

std::unique_ptr<PieceReader> reader_of(const StoreSource& source, int64_t cut, const TextPieces::CompletePrefix& complete_prefix) {
  if (is_text(source)) return std::make_unique<TextReader>(source.files, cut, complete_prefix);
  return std::make_unique<DocumentReader>(source.files, source.documents, complete_prefix);
}

// Reads a source: how many characters, or documents, it has; and which characters, where they are asked for.
int64_t units_of(const StoreSource& source, CharacterSet* characters) {
  if (is_text(source) && characters) {
    const int64_t before = characters->count();
    characters->add(source.files);
    return characters->count() - before;
  }
  int64_t units = 0;
  if (is_text(source)) {
    TextStream stream(source.files);
    for (std::string_view block; !(block = stream.next()).empty();) units += count_characters(block);
    return units;
  }
  DocumentReader reader(source.files, source.documents, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) {
    if (characters) characters->add(piece.text + "\n", 0);
    units += piece.starts;
  }
  return units;
}

StoredSource make_store(const std::string& cache_folder, const StoreKey& key, const StoreSource& source, int64_t cut,
    const std::shared_ptr<const Tokenizer>& tokenizer) {
  Draft draft(cache_folder, key.place);
  const Folder& folder = draft.folder();
  const auto reader = reader_of(source, cut, [&](std::string_view text) { return tokenizer->complete_prefix(text); });
  const int64_t first_documents = is_text(source) && cut > 0 ? 1 : cut;
  const int64_t shard_tokens = std::max(kMinShard, source.files.bytes_on_disk() / kMaxShards);
  Prepared made;
  write_tokenizer(folder, *tokenizer);
  write_shards(*reader, source.files, *tokenizer, folder, header_of(*tokenizer, key.stamp, source.documents.classes),
      {shard_tokens, !is_text(source), first_documents}, made);
  const ShardedTokens all = ShardedTokens::hold(folder.path(), *tokenizer);
  Description description{key.settled ? key.stamp : 0, all.hash(), made.first_shards, cut, made.empty_documents};
  StoredSource result = stored(all, source, tokenizer, description);
  result.cache_fault = draft.fault();
  if (cache_folder.empty() || !draft.fault().empty()) return result;
  write_file_atomically(FilePlace(folder, kDescription), text_of(description));
  draft.keep(cache_folder);
  return result;
}

}  // namespace

std::vector<StoredSource> open_sources(const std::vector<StoreSource>& sources, const std::shared_ptr<const Tokenizer>& given,
    const TokenizerRequest& request, const std::string& cache_folder) {
  std::vector<std::optional<StoredSource>> found;
  std::vector<StoreKey> keys;
  bool all_found = true;
  for (const StoreSource& source : sources) {
    std::vector<StoreKey> tried;
    for (const std::string& key : request.keys) tried.push_back(key_of(source, key, sources));
    if (given)
      tried.push_back(
          key_of(source, format_message("given {}{}", {given->hash(), given->marks().first < 0 ? "" : " with its first token"}), {}));
    else tried.resize(1);
    keys.push_back(given ? tried.back() : tried.front());
    found.emplace_back();
    for (size_t i = 0; i < tried.size() && !found.back(); ++i) found.back() = find_store(cache_folder, tried[i], source, given);
    all_found &= found.back().has_value();
  }
  std::vector<StoredSource> all;
  for (const auto& each : found)
    if (all_found) all.push_back(*each);
  if (all_found) return all;

  CharacterSet characters;
  std::vector<int64_t> cuts;
  int64_t units = 0;
  const bool reads_characters = !given && request.reads_characters;
  for (const StoreSource& source : sources) {
    const bool reads = reads_characters || source.train_fraction > 0;
    CharacterSet* const noted = reads_characters ? &characters : nullptr;
    const int64_t here = reads ? units_of(source, noted) : 0;
    cuts.push_back(reads ? cut_of(source, here) : 0);
    units += here;
  }
  const int64_t all_cut = static_cast<int64_t>(std::floor(static_cast<double>(units) * sources[0].train_fraction));
  const auto tokenizer = given ? given : request.make(characters.sorted(), cuts, all_cut);
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool is_there = found[i] && (given || found[i]->tokenizer->hash() == tokenizer->hash());
    const auto make = [&](const std::string& folder) { return make_store(folder, keys[i], sources[i], cuts[i], tokenizer); };
    try {
      all.push_back(is_there ? *found[i] : make(cache_folder));
    } catch (const DiskFull& full) {  // the folder for temporary files may have room
      if (cache_folder.empty()) throw;
      all.push_back(make(""));
      all.back().cache_fault = full.what();
    }
  }
  return all;
}

}  // namespace ricci
