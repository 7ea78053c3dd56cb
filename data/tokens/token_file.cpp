// The cache of tokenised texts, and reading from it.
#include "data/tokens/token_file.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <vector>

#include "core/error.h"
#include "core/files/file.h"
#include "core/files/hash.h"
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
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/ricci";  // the XDG standard ignores relative paths
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/ricci" : "";
}

namespace {

// One file per text, part and kind of tokenizer, so that a changed text replaces its tokens.
std::string cache_path(const TextSource& text, const Tokenizer& tokenizer, const std::string& folder) {
  const std::string kind = format_message("{}-{}", {tokenizer.name(), tokenizer.vocab_size()});
  const auto key = static_cast<int64_t>(hash_bytes(kind, text.place_hash()) >> 1);
  const std::string label = text.label().empty() ? "all" : text.label();
  return folder + "/" + format_message("{}-{}-{:016x}.tokens", {label, kind, key});
}

// Empty where the file holds the tokens of this text, else what is wrong with it.
std::string check_cache(const OpenFile& file, TokenTrailer& trailer, const TextSource& text,
                        const Tokenizer& tokenizer) {
  const std::string damage = check_token_file(file, trailer);
  if (!damage.empty()) return damage;
  if (trailer.tokenizer_hash != tokenizer.hash()) return "it was made by another tokenizer";
  if (trailer.text_hash != text.content_hash()) return "the text or the cut changed";
  return "";
}

void write_tokens(const TextSource& text, const Tokenizer& tokenizer, FileWriter& file) {
  TokenWriter writer(file, tokenizer.vocab_size());
  std::vector<int64_t> ids;
  int64_t bytes = 0;
  const auto complete = [&](std::string_view piece) { return tokenizer.complete_prefix(piece); };
  for_each_piece(text, complete, [&](std::string_view piece, int64_t offset) {
    ids.clear();
    try {
      tokenizer.append_ids(piece, offset, ids);
    } catch (const Error& error) {
      fail("{}: {}", {text.name(), error.what()});
    }
    writer.append(ids);
    bytes += static_cast<int64_t>(piece.size());
  });
  text.check_unchanged();
  writer.finish(bytes, tokenizer.hash(), text.content_hash());
}

using WriteTokens = std::function<void(FileWriter&)>;

// Opens the file that was just written and reads its trailer.
OpenFile reopen(const std::string& path, TokenTrailer& trailer) {
  OpenFile file(path);
  if (!file) fail("token file: cannot read {}: {}", {path, std::strerror(errno)});
  const std::string problem = check_token_file(file, trailer);
  if (!problem.empty()) fail("token file: {} was just written, but {}", {path, problem});
  return file;
}

// A file in a temporary folder that has no name any more when this returns.
OpenFile write_temporary(const WriteTokens& write, TokenTrailer& trailer) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  std::string folder = (error ? "/tmp" : parent.string()) + "/ricci-XXXXXX";
  if (!::mkdtemp(folder.data())) fail("token file: cannot make a folder {}: {}", {folder, std::strerror(errno)});
  const struct Remove {
    std::string folder;
    ~Remove() {
      std::error_code ignored;  // what cannot be removed stays in the temporary folder
      fs::remove_all(folder, ignored);
    }
  } remove{folder};
  write_file_atomically(folder + "/tokens", write);
  return reopen(folder + "/tokens", trailer);
}

// Writes to the path. Returns why this cannot be done, before anything was tokenised; empty when it was done.
std::string write_cache(const std::string& path, const WriteTokens& write) {
  if (path.empty()) return "there is no cache folder";
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return path + " cannot be written: " + error.message();
  remove_abandoned_files(fs::path(path).parent_path());  // the tokens of a long text, after Ctrl-C
  bool started = false;
  try {
    write_file_atomically(path, [&](FileWriter& file) {
      started = true;
      write(file);
    });
  } catch (const Error& problem) {
    if (started) throw;
    return problem.what();
  }
  return "";
}

}  // namespace

TokenFile TokenFile::open(const TextSource& text, const Tokenizer& tokenizer, const std::string& cache_folder) {
  auto contents = std::make_shared<Contents>();
  const std::string path = cache_folder.empty() ? "" : cache_path(text, tokenizer, cache_folder);
  if (!path.empty()) contents->file = OpenFile(path);
  const bool found = static_cast<bool>(contents->file);
  const std::string problem = found ? check_cache(contents->file, contents->trailer, text, tokenizer) : "";
  std::string place = "read from " + path;
  if (!found || !problem.empty()) {
    const auto write = [&](FileWriter& file) { write_tokens(text, tokenizer, file); };
    const std::string obstacle = write_cache(path, write);
    contents->file = obstacle.empty() ? reopen(path, contents->trailer) : write_temporary(write, contents->trailer);
    const std::string replaced = check_cache(contents->file, contents->trailer, text, tokenizer);
    if (!replaced.empty()) fail("token file: another program replaced {} at once: {}", {path, replaced});
    place = obstacle.empty() ? "written to " + path : "in a temporary file, because " + obstacle;
  }
  if (!problem.empty()) place += ", made again because of the old file: " + problem;
  contents->name = text.name();
  contents->origin = format_message("{}: {} tokens {}", {contents->name, contents->trailer.tokens, place});
  return TokenFile(contents);
}

TokenFile TokenFile::of_ids(std::span<const int64_t> ids, int64_t vocab_size) {
  auto contents = std::make_shared<Contents>();
  const auto write = [&](FileWriter& file) {
    TokenWriter writer(file, vocab_size);
    writer.append(ids);
    writer.finish(0, 0, 0);
  };
  contents->file = write_temporary(write, contents->trailer);
  contents->name = "ids";
  contents->origin = format_message("ids: {} tokens in a temporary file", {ids.size()});
  return TokenFile(contents);
}

int64_t TokenFile::size() const { return contents_->trailer.tokens; }
int64_t TokenFile::vocab_size() const { return contents_->trailer.vocab_size; }
int64_t TokenFile::text_bytes() const { return contents_->trailer.text_bytes; }
uint64_t TokenFile::hash() const { return contents_->trailer.tokens_hash; }
const std::string& TokenFile::name() const { return contents_->name; }
const std::string& TokenFile::origin() const { return contents_->origin; }

void TokenFile::read(int64_t first, std::span<int64_t> ids) const {
  const TokenTrailer& trailer = contents_->trailer;
  const auto count = static_cast<int64_t>(ids.size());
  if (first < 0 || first + count > trailer.tokens)
    fail("{}: tokens {} to {} are not in a text of {} tokens", {name(), first, first + count, trailer.tokens});
  // The packed ids go to the front of the target and are widened from the back, where none is overwritten unread.
  const size_t width = trailer.bytes_per_token;
  const char* packed = reinterpret_cast<const char*>(ids.data());
  const int64_t position = first * static_cast<int64_t>(width);
  if (contents_->file.read(ids.data(), ids.size() * width, position) < ids.size() * width)
    fail("{}: the token file was cut while it was in use, it has no {} tokens any more", {name(), first + count});
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
