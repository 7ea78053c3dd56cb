// The cache of tokenised texts, and reading from it.
#include "data/tokens/token_file.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <vector>

#include "core/error.h"
#include "core/files/file.h"
#include "core/files/hash.h"
#include "data/tokenizers/parallel_encode.h"
#include "data/tokens/token_storage.h"

namespace ricci {

namespace fs = std::filesystem;

struct TokenFile::Contents {
  OpenFile file;
  TokenTrailer trailer;
  std::string name;
  std::string origin;
};

std::string default_cache_folder() {
  if (const char* own = std::getenv("RICCI_CACHE"); own && *own) return own;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/ricci";  // the XDG standard ignores relative paths
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/ricci" : "";
}

namespace {

// One file per text, part and kind of tokenizer, so that a changed text replaces its tokens.
std::string cache_name(const TextSource& text, const Tokenizer& tokenizer) {
  const std::string kind = format_message("{}-{}", {tokenizer.name(), tokenizer.vocab_size()});
  const auto key = static_cast<int64_t>(hash_bytes(kind, text.place_hash()) >> 1);
  const std::string label = text.label().empty() ? "all" : text.label();
  return format_message("{}-{}-{:016x}.tokens", {label, kind, key});
}

// Empty where the file holds the tokens of this text, else what is wrong with it.
std::string check_cache(const OpenFile& file, TokenTrailer& trailer, const TextSource& text, const Tokenizer& tokenizer) {
  const std::string damage = check_token_file(file, trailer);
  if (!damage.empty()) return damage;
  if (trailer.tokenizer_hash != tokenizer.hash()) return "it was made by another tokenizer";
  if (trailer.text_hash != text.content_hash()) return "the text or the cut changed";
  return "";
}

void write_tokens(const TextSource& text, const Tokenizer& tokenizer, FileWriter& file) {
  TokenWriter writer(file, tokenizer.vocab_size());
  int64_t bytes = 0;
  for_each_ids(text, tokenizer, [&](std::span<const int64_t> ids, int64_t of_bytes) {
    writer.append(ids);
    bytes += of_bytes;
  });
  text.check_unchanged();
  writer.finish(bytes, tokenizer.hash(), text.content_hash());
}

using WriteTokens = std::function<void(FileWriter&)>;

// Reads the trailer of a file that was just written.
TokenTrailer trailer_of(const OpenFile& file) {
  TokenTrailer trailer;
  const std::string problem = check_token_file(file, trailer);
  if (!problem.empty()) fail("token file: {} was just written, but {}", {file.path(), problem});
  return trailer;
}

// A file without a name in the first folder for temporary files that has room for it.
OpenFile write_temporary(const WriteTokens& write) {
  std::error_code error;
  const fs::path asked = fs::temp_directory_path(error);  // $TMPDIR, where that is a folder
  bool started = false;
  const auto noting = [&](FileWriter& file) {
    started = true;
    write(file);
  };
  for (const fs::path& folder : {error ? fs::path("/tmp") : asked, fs::path("/tmp"), fs::path("/var/tmp")}) {
    try {
      return write_unnamed_file(folder.string(), noting);
    } catch (const Error&) {
      if (started || folder == "/var/tmp") throw;
    }
  }
  fail("token file: no folder for temporary files");
}

// Where the tokens are kept between runs; nothing, and why, where they cannot be.
std::optional<FilePlace> cache_place(const TextSource& text, const Tokenizer& tokenizer, const std::string& folder, std::string& obstacle) {
  if (folder.empty()) obstacle = "there is no cache folder";
  if (folder.empty()) return {};
  try {
    const Folder own = own_folder(folder);
    remove_abandoned_files(own);  // the tokens of a long text, after Ctrl-C
    return FilePlace(own, cache_name(text, tokenizer));
  } catch (const Error& error) {
    obstacle = error.what();
    return {};
  }
}

// The file that is kept; nothing, and why, where it cannot be used.
std::optional<OpenFile> read_cache(
    const FilePlace& place, TokenTrailer& trailer, const TextSource& text, const Tokenizer& tokenizer, std::string& problem) {
  try {
    std::optional<OpenFile> file = OpenFile::find(place);
    if (!file) return {};
    problem = check_cache(*file, trailer, text, tokenizer);
    if (problem.empty()) return file;
  } catch (const Error& error) {
    problem = error.what();
  }
  return {};
}

// Writes to the place. Nothing, and why, where this cannot be done, before anything was tokenised.
std::optional<OpenFile> write_cache(const FilePlace& place, const WriteTokens& write, std::string& obstacle) {
  bool started = false;
  try {
    return write_file_atomically(place, [&](FileWriter& file) {
      started = true;
      write(file);
    });
  } catch (const Error& error) {
    if (started) throw;
    obstacle = error.what();
    return {};
  }
}

}  // namespace

// What is read is the file that was opened and checked, or that was written here, whatever other programs put in its place.
TokenFile TokenFile::open(const TextSource& text, const Tokenizer& tokenizer, const std::string& cache_folder) {
  std::string problem, obstacle, origin;
  TokenTrailer trailer;
  const std::optional<FilePlace> place = cache_place(text, tokenizer, cache_folder, obstacle);
  std::optional<OpenFile> file;
  if (place) file = read_cache(*place, trailer, text, tokenizer, problem);
  if (file) origin = "read from " + place->path;
  if (!file) {
    const auto write = [&](FileWriter& to) { write_tokens(text, tokenizer, to); };
    if (place) file = write_cache(*place, write, obstacle);
    origin = file ? "written to " + place->path : "in a temporary file, because " + obstacle;
    if (!file) file = write_temporary(write);
    trailer = trailer_of(*file);
  }
  if (!problem.empty()) origin += ", made again because of the old file: " + problem;
  origin = format_message("{}: {} tokens {}", {text.name(), trailer.tokens, origin});
  return TokenFile(std::make_shared<Contents>(Contents{std::move(*file), trailer, text.name(), origin}));
}

TokenFile TokenFile::of_ids(std::span<const int64_t> ids, int64_t vocab_size) {
  OpenFile file = write_temporary([&](FileWriter& to) {
    TokenWriter writer(to, vocab_size);
    writer.append(ids);
    writer.finish(0, 0, 0);
  });
  const TokenTrailer trailer = trailer_of(file);
  const std::string origin = format_message("ids: {} tokens in a temporary file", {ids.size()});
  return TokenFile(std::make_shared<Contents>(Contents{std::move(file), trailer, "ids", origin}));
}

int64_t TokenFile::size() const { return contents_->trailer.tokens; }
int64_t TokenFile::vocab_size() const { return contents_->trailer.vocab_size; }
int64_t TokenFile::text_bytes() const { return contents_->trailer.text_bytes; }
uint64_t TokenFile::hash() const { return contents_->trailer.tokens_hash; }
uint64_t TokenFile::tokenizer_hash() const { return contents_->trailer.tokenizer_hash; }
const std::string& TokenFile::name() const { return contents_->name; }
const std::string& TokenFile::origin() const { return contents_->origin; }

void TokenFile::read(int64_t first, std::span<int64_t> ids) const {
  const TokenTrailer& trailer = contents_->trailer;
  check_range(first, ids);
  // The packed ids go to the front of the target and are widened from the back, where none is overwritten unread.
  const size_t width = trailer.bytes_per_token;
  const char* packed = reinterpret_cast<const char*>(ids.data());
  const int64_t position = first * static_cast<int64_t>(width);
  if (contents_->file.read(ids.data(), ids.size() * width, position) < ids.size() * width)
    fail(
        "{}: the token file was cut while it was in use, it has no {} tokens any more", {name(), first + static_cast<int64_t>(ids.size())});
  for (size_t i = ids.size(); i-- > 0;) {
    uint32_t id = 0;
    std::memcpy(&id, packed + i * width, width);
    if (id >= trailer.vocab_size)
      fail("{}: the token file is damaged, id {} at index {} is outside the vocabulary of {}",
          {name(), id, first + static_cast<int64_t>(i), trailer.vocab_size});
    ids[i] = id;
  }
}

}  // namespace ricci
