// A folder in the cache is named shards-PLACE-STAMP: PLACE is a hash of the paths, the options and the tokenizer, STAMP a hash of the
// sizes, times and inodes of the files. A new folder replaces those with the same PLACE, because otherwise every change of a text would
// leave its old shards in the cache. A program that makes shards in a folder holds its lock.
#include "data/shards/cache.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "core/choice.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "core/files/file.h"
#include "data/shards/prepare.h"
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
constexpr int64_t kMinShard = 4 << 20;  // tokens
constexpr int64_t kMaxShards = 64;      // about, because all of them stay open

// ---- Names
struct CacheName {
  std::string place, stamp;
  std::string text() const { return place + stamp; }
  uint64_t source_hash() const { return hash_bytes(text()); }
};

std::string to_text(const DocumentOptions& o, double train_fraction) {
  std::string text = format_message("{} {} {} {}:{}{}:{}",
      {name_of(o.format), train_fraction, o.classes, o.text_field.size(), o.text_field, o.label_field.size(), o.label_field});
  for (const std::vector<std::string>& list : {o.labels, o.chat})
    for (const std::string& each : list) text += format_message(" {}:{}", {each.size(), each});
  return text;
}

// tokenizer: identifies a given one, or is the key of a request, for a tokenizer that is made from the sources in made_of.
CacheName make_name(
    const Documents& source, double train_fraction, const std::string& tokenizer, const std::vector<Documents>& made_of = {}) {
  uint64_t place = hash_bytes(to_text(source.options, train_fraction), hash_bytes(tokenizer, source.files.place_hash()));
  uint64_t stamp = source.files.stamp_hash();
  for (const Documents& each : made_of) {
    place = hash_bytes(format_message("{}", {each.files.place_hash()}), hash_bytes(to_text(each.options, train_fraction), place));
    stamp = hash_bytes(format_message("{}", {each.files.stamp_hash()}), stamp);
  }
  return {format_message("shards-{:016x}-", {place}), format_message("{:016x}", {stamp})};
}

// ---- Folders
// A folder that the user names gets the usual access rights, because others can use it as well. Other folders are for this user only.
void make_cache(const std::string& path) {
  const char* const named = std::getenv("RICCI_CACHE");
  make_folders(path, named && path == named ? 0777 : 0700);
}

// Waits for another program that makes shards in the folder. It can remove the folder when it fails.
FolderLock make_and_lock(const std::string& folder) {
  for (;;) {
    make_folders(folder);
    FolderLock lock = *FolderLock::take(folder, true);
    if (!lock.holds(folder)) continue;
    if (::access(folder.c_str(), W_OK | X_OK) != 0) fail("{}: cannot be written: {}", {folder, system_reason()});
    return lock;
  }
}

// The folder is for this user only.
std::string make_temporary_folder() {
  std::error_code error;
  const fs::path asked = fs::temp_directory_path(error);  // $TMPDIR, if that is a folder
  std::string path = (error ? "/tmp" : asked.string()) + "/ricci-XXXXXX";
  if (!::mkdtemp(path.data())) fail("{}: cannot be made: {}", {path, system_reason()});
  return path;
}

void remove_all(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
  fs::remove(path, ignored);  // an empty folder can be removed even if the disk refuses to list it
}

// Removes the folders that this one replaces, unless another program makes shards in them.
void remove_replaced(const std::string& cache, const CacheName& name) {
  for (const std::string& other : names_in(cache)) {
    if (!other.starts_with(name.place) || other == name.text()) continue;
    try {
      if (const auto lock = FolderLock::take(cache + "/" + other)) remove_all(cache + "/" + other);
    } catch (const Error&) {  // another program has removed it
    }
  }
}

// A folder that is removed at the end unless it is kept.
struct Draft {
  std::string folder;
  bool is_kept = false;
  ~Draft() {
    if (!is_kept) remove_all(folder);
  }
};

// The number of characters of a text, or of records.
int64_t count_units(const Documents& source) {
  int64_t units = 0;
  if (source.joined) {
    TextStream stream(source.files);
    while (stream.next_member())
      for (std::string_view block; !(block = stream.next()).empty();) units += count_characters(block);
    return units;
  }
  DocumentReader reader(source, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) units += piece.starts;
  return units;
}

// ---- One call of open_cached
struct Opening {
  const std::vector<Documents>& sources;
  double train_fraction;
  const TokenizerRequest& request;
  const std::string& cache_folder;
  std::shared_ptr<const Tokenizer> tokenizer;  // null until it is found or made
  std::map<size_t, int64_t> units = {};        // numbers of characters or records, of the sources that were counted

  std::vector<CachedText> open() {
    const char* const start = tokenizer && tokenizer->marks().first >= 0 ? " with its first token" : "";
    const std::string given = tokenizer ? format_message("given {}{}", {tokenizer->hash(), start}) : "";
    std::vector<CacheName> names;
    std::vector<std::optional<CachedText>> found(sources.size());
    for (size_t i = 0; i < sources.size(); ++i) {
      std::vector<CacheName> tried;
      if (!request.key.empty()) tried.push_back(make_name(sources[i], train_fraction, request.key, sources));
      if (!given.empty()) tried.push_back(make_name(sources[i], train_fraction, given));
      for (size_t n = 0; n < tried.size() && !found[i]; ++n) found[i] = find(i, tried[n]);
      if (found[i]) tokenizer = found[i]->tokenizer;
      names.push_back(tried.back());
    }
    std::vector<CachedText> all;
    for (size_t i = 0; i < sources.size(); ++i) all.push_back(found[i] ? *found[i] : make(i, names[i]));
    return all;
  }

  bool is_cut(size_t i) const { return sources[i].joined && train_fraction > 0; }

  // Error: the folder does not have all shards of this source, undamaged and made by this tokenizer, if it is known.
  CachedText open_folder(const std::string& folder, size_t i, const CacheName& name) const {
    const TextSource& files = sources[i].files;
    const auto its = tokenizer ? tokenizer : tokenizer_of_shards(folder);
    const std::string first = folder + "/" + shard_name(0);
    if (ShardFile(first).header().source_hash != name.source_hash()) fail("{}: a shard of another text", {first});
    const Tokens tokens =
        Tokens::open_checked(folder, *its, files.name(), sources[i].joined ? Tokens::Unit::blocks : Tokens::Unit::documents);
    return {its, tokens, is_cut(i) ? tokens.bytes_before_cut() : 0};
  }

  std::string folder_path(const CacheName& name) const { return cache_folder + "/" + name.text(); }

  std::optional<CachedText> find(size_t i, const CacheName& name) const {
    if (cache_folder.empty()) return {};
    try {
      return open_folder(folder_path(name), i, name);
    } catch (const Error&) {  // the shards are made
      return {};
    }
  }

  CachedText make(size_t i, const CacheName& name) {
    std::string fault;
    if (const std::optional<FolderLock> held = lock(name, fault)) {
      if (const std::optional<CachedText> made = find(i, name)) {  // another program has made the shards meanwhile
        tokenizer = made->tokenizer;
        return *made;
      }
      Draft draft{folder_path(name)};
      try {
        const CachedText made = make_in(draft.folder, i, name);
        draft.is_kept = true;
        remove_replaced(cache_folder, name);
        return made;
      } catch (const DiskFull& full) {  // the folder for temporary files can be on another disk
        fault = full.what();
      }
    }
    const Draft draft{make_temporary_folder()};
    CachedText made = make_in(draft.folder, i, name);
    made.fault = fault;
    return made;
  }

  std::optional<FolderLock> lock(const CacheName& name, std::string& fault) const {
    if (cache_folder.empty()) return {};
    try {
      make_cache(cache_folder);
      return make_and_lock(folder_path(name));
    } catch (const Error& error) {
      fault = error.what();
      return {};
    }
  }

  CachedText make_in(const std::string& folder, size_t i, const CacheName& name) {
    if (!tokenizer) tokenizer = make_tokenizer();
    Documents source = sources[i];
    if (is_cut(i)) source.cut = find_cut(i);
    const Prepared made = prepare_shards(source, tokenizer, folder,
        {.shard_tokens = std::max(kMinShard, source.files.bytes_on_disk() / kMaxShards),
            .source_hash = name.source_hash(),
            .replaces = true});
    CachedText text = open_folder(folder, i, name);
    text.empty_documents = made.empty_documents;
    return text;
  }

  std::shared_ptr<const Tokenizer> make_tokenizer() {
    CharacterSet characters;
    int64_t all = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (request.reads_characters) {
        characters.add(sources[i]);
        units[i] = characters.count() - all;
      } else if (train_fraction > 0) units[i] = count_units(sources[i]);
      all += units[i];
    }
    const FormatTraits& format = traits_of(sources[0].options.format);
    if (!format.is_text() && !format.has_mask()) characters.add("\n", 0);
    return request.make(characters.sorted(), train_part(all));
  }

  int64_t train_part(int64_t all) const { return static_cast<int64_t>(std::floor(static_cast<double>(all) * train_fraction)); }

  // The text is cut before this character.
  int64_t find_cut(size_t i) {
    if (!units.contains(i)) units[i] = count_units(sources[i]);
    const int64_t train = train_part(units[i]);
    if (train < 1 || train >= units[i])
      fail("split: {} has {} characters, too few for a training fraction of {}", {sources[i].files.name(), units[i], train_fraction});
    return train;
  }
};

}  // namespace

std::vector<CachedText> open_cached(const std::vector<Documents>& sources, double train_fraction,
    const std::shared_ptr<const Tokenizer>& given, const TokenizerRequest& request, const std::string& cache_folder) {
  return Opening{sources, train_fraction, request, cache_folder, given}.open();
}

}  // namespace ricci
