#include "data/shards/cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/choice.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "core/json.h"
#include "data/shards/prepare.h"

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
// Tokens in the first shard, and the growth from shard to shard. Growth limits the number of shards that are open together.
constexpr int64_t kFirstShard = 4 << 20, kGrowth = 256 << 10;

// Returns KIND-PLACE-STAMP-SETTINGS, with hashes of the paths; of the sizes, times and inodes of the files; and of everything else.
std::string make_name(const char* kind, const std::vector<Documents>& sources, uint64_t settings) {
  std::vector<uint64_t> places, stamps, all{settings};
  for (const auto& [files, options, cut, stops, limit] : sources) {
    places.push_back(files.place_hash());
    stamps.push_back(files.stamp_hash());
    all.push_back(hash_of(options));
  }
  return format_message("{}-{:016x}-{:016x}-{:016x}", {kind, xxh64(bytes_of(places)), xxh64(bytes_of(stamps)), xxh64(bytes_of(all))});
}

// ---- Folders
// Makes and locks a folder. Waits for other programs that use the folder, and makes it again if they removed it.
FolderLock make_and_lock(const std::string& folder) {
  for (;;) {
    make_folders(folder);
    FolderLock lock = *FolderLock::take(folder, true);
    if (!lock.holds(folder)) continue;
    if (::access(folder.c_str(), W_OK | X_OK) != 0) fail("{}: cannot be written: {}", {folder, system_reason()});
    return lock;
  }
}

// Makes a folder that only this user can read.
std::string make_temporary_folder() {
  std::error_code error;
  const fs::path asked = fs::temp_directory_path(error);  // $TMPDIR, if that is a folder
  std::string path = (error ? "/tmp" : asked.string()) + "/ricci-XXXXXX";
  if (!::mkdtemp(path.data())) fail("{}: cannot be created: {}", {path, system_reason()});
  return path;
}

void remove_all(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
  fs::remove(path, ignored);  // an empty folder can be removed even if listing it fails
}

constexpr size_t kChecksum = 17;  // bytes of a checksum line
std::string checksum_line(std::string_view text) { return format_message("{:016x}\n", {xxh64(text)}); }

// A folder that the destructor removes, unless is_kept.
struct Draft {
  std::string folder;
  bool is_kept = false;
  ~Draft() {
    if (!is_kept) remove_all(folder);
  }
};

}  // namespace

// Removes folders for earlier versions of the same files, unless another program uses them.
void Cache::remove_replaced(const std::string& name) const {
  const std::string stamp = name.substr(0, name.rfind('-') + 1), place = stamp.substr(0, stamp.rfind('-', stamp.size() - 2) + 1);
  for (const std::string& other : names_in(folder_)) {
    if (!other.starts_with(place) || other.starts_with(stamp)) continue;
    try {
      if (const auto lock = FolderLock::take(folder_ + "/" + other)) remove_all(folder_ + "/" + other);
    } catch (const Error&) {  // another program has removed the folder
    }
  }
}

std::optional<FolderLock> Cache::lock(const std::string& folder) {
  const char* const named = std::getenv("RICCI_CACHE");  // a folder named by the user can be shared with other users
  try {
    make_folders(folder_, named && folder_ == named ? 0777 : 0700);
    return make_and_lock(folder);
  } catch (const Error& error) {
    fault_ = error.what();
    return {};
  }
}

// find(folder) throws an Error if the folder is incomplete or damaged. make(folder) continues an interrupted call.
template <class Find, class Make> auto Cache::find_or_make(const std::string& name, const Find& find, const Make& make) {
  const std::string folder = folder_ + "/" + name;
  using Result = decltype(make(folder));
  const auto found = [&]() -> std::optional<Result> {
    try {
      return find(folder);
    } catch (const Error&) {
      return {};
    }
  };
  if (!folder_.empty()) {
    if (std::optional<Result> before = found()) return *std::move(before);
    if (const std::optional<FolderLock> held = lock(folder)) {
      if (std::optional<Result> meanwhile = found()) return *std::move(meanwhile);  // another program has made the result
      Draft draft{folder};
      try {
        Result made = make(folder);
        draft.is_kept = true;
        remove_replaced(name);
        return made;
      } catch (const Error& error) {
        draft.is_kept = is_there(folder + "/" + shard_name(0));  // a later call continues
        if (!dynamic_cast<const DiskFull*>(&error)) throw;
        fault_ = error.what();  // the folder for temporary files can be on another disk
      }
    }
  }
  const Draft draft{make_temporary_folder()};
  return make(draft.folder);
}

// Finds or makes a text. The file begins with the checksum of the text.
template <class Make> std::string Cache::text(const std::string& name, const Make& make) {
  const auto find = [](const std::string& folder) {
    const std::string file = read_text(folder + "/text", kMaxTokenizer), text = file.substr(std::min(kChecksum, file.size()));
    if (file != checksum_line(text) + text) fail("{}: is damaged", {folder});
    return text;
  };
  return find_or_make(name, find, [&](const std::string& folder) {
    const std::string text = make();
    write_atomically(folder + "/text", checksum_line(text) + text);
    return text;
  });
}

std::shared_ptr<const Tokenizer> Cache::tokenizer(const TokenizerRecipe& recipe, std::vector<Documents>& sources, double train_fraction) {
  if (recipe.name == "byte") return make_tokenizer(recipe, sources);  // uses no text
  const std::string name = make_name("tokenizer", sources, hash_bytes(format_message("{} {}", {train_fraction, recipe.key()})));
  return tokenizer_from_json(text(name, [&] { return make_tokenizer(recipe, sources, train_fraction)->to_json(); }));
}

std::vector<std::string> Cache::labels(const Documents& documents) {
  const std::string json = text(make_name("labels", {documents}, 0), [&] { return Json(word_labels(documents)).dump(); });
  return parse_json(json, "labels").get<std::vector<std::string>>();
}

CachedText Cache::tokens(const Documents& documents, const std::shared_ptr<const Tokenizer>& tokenizer, double train_fraction) {
  const char* const start = tokenizer->marks().first >= 0 ? " with its first token" : "";
  const uint64_t settings = hash_bytes(format_message("{} {}{}", {train_fraction, tokenizer->hash(), start}));
  const std::string name = make_name("shards", {documents}, settings);
  const uint64_t source_hash = hash_bytes(name);
  const auto find = [&](const std::string& folder) -> CachedText {
    const std::string first = folder + "/" + shard_name(0);
    if (ShardFile(first).header().source_hash != source_hash) fail("{}: the shard belongs to a different text", {first});
    return {Tokens::open_cached(folder, *tokenizer, documents.files.name())};
  };
  const auto make = [&](const std::string& folder) -> CachedText {
    Documents text = documents;
    if (text.is_text() && train_fraction > 0 && text.cut == 0) cut_text(text, train_fraction);
    const PrepareOptions options{.shard_tokens = kFirstShard, .growth = kGrowth, .source_hash = source_hash, .replaces = true};
    const Prepared made = prepare_shards(text, tokenizer, folder, options);
    return {find(folder).tokens, made.empty_documents};
  };
  return find_or_make(name, find, make);
}

}  // namespace ricci
