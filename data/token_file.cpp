// The cache of tokenised texts, and reading from it.
#include "data/token_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "data/hash.h"
#include "data/token_storage.h"

namespace ricci {

namespace fs = std::filesystem;

struct TokenFile::Contents {
  OpenFile file;
  TokenHeader header;
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
std::string check_cache(const OpenFile& file, TokenHeader& header, const TextSource& text, const Tokenizer& tokenizer) {
  const std::string damage = check_token_file(file, header);
  if (!damage.empty()) return damage;
  if (header.tokenizer_hash != tokenizer.hash()) return "it was made by another tokenizer";
  if (header.text_hash != text.content_hash()) return "the text or the cut changed";
  return "";
}

TokenHeader write_tokens(const TextSource& text, const Tokenizer& tokenizer, const OpenFile& file) {
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
  return writer.finish(bytes, tokenizer.hash(), text.content_hash());
}

// Opens a new file that is to become `path`. Returns why not, or empty, and then `temporary` is its name until then.
std::string create_beside(const std::string& path, OpenFile& file, std::string& temporary) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  temporary = path + ".XXXXXX";
  if (!error) file = OpenFile(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file) return "";
  return path + " cannot be written: " + (error ? error.message() : std::strerror(errno));
}

void sync_and_rename(const OpenFile& file, const std::string& temporary, const std::string& path) {
  if (::fsync(file.descriptor()) != 0) fail("token file: cannot sync {}: {}", {temporary, std::strerror(errno)});
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    fail("token file: cannot rename {} to {}: {}", {temporary, path, std::strerror(errno)});
  const OpenFile folder(::open(fs::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.descriptor());  // without it a crash may lose the name, and the next run tokenises again
}

// Tokenises the text into a new file, for good under `path` if that can be. Returns for the log where the tokens lie.
std::string build(const TextSource& text, const Tokenizer& tokenizer, const std::string& path, OpenFile& file,
                  TokenHeader& header) {
  std::string temporary;
  file = OpenFile();
  const std::string obstacle = path.empty() ? "there is no cache folder" : create_beside(path, file, temporary);
  const bool keep = obstacle.empty();
  if (!keep) file = open_anonymous_file();
  try {
    header = write_tokens(text, tokenizer, file);
    if (keep) sync_and_rename(file, temporary, path);
  } catch (...) {
    if (keep) ::unlink(temporary.c_str());
    throw;
  }
  return keep ? "written to " + path : "in a temporary file, because " + obstacle;
}

}  // namespace

TokenFile TokenFile::open(const TextSource& text, const Tokenizer& tokenizer, const std::string& cache_folder) {
  auto contents = std::make_shared<Contents>();
  OpenFile& file = contents->file;
  const std::string path = cache_folder.empty() ? "" : cache_path(text, tokenizer, cache_folder);
  if (!path.empty()) file = OpenFile(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const bool found = static_cast<bool>(file);
  const std::string problem = found ? check_cache(file, contents->header, text, tokenizer) : "";
  std::string place = "read from " + path;
  if (!found || !problem.empty()) place = build(text, tokenizer, path, file, contents->header);
  if (!problem.empty()) place += ", made again because of the old file: " + problem;
  contents->name = text.name();
  contents->origin = format_message("{}: {} tokens {}", {contents->name, contents->header.tokens, place});
  return TokenFile(contents);
}

TokenFile TokenFile::of_ids(std::span<const int64_t> ids, int64_t vocab_size) {
  auto contents = std::make_shared<Contents>();
  contents->name = "ids";
  contents->file = open_anonymous_file();
  TokenWriter writer(contents->file, vocab_size);
  writer.append(ids);
  contents->header = writer.finish(0, 0, 0);
  contents->origin = format_message("ids: {} tokens in a temporary file", {ids.size()});
  return TokenFile(contents);
}

int64_t TokenFile::size() const { return contents_->header.tokens; }
int64_t TokenFile::vocab_size() const { return contents_->header.vocab_size; }
int64_t TokenFile::text_bytes() const { return contents_->header.text_bytes; }
const std::string& TokenFile::name() const { return contents_->name; }
const std::string& TokenFile::origin() const { return contents_->origin; }

void TokenFile::read(int64_t first, std::span<int64_t> ids) const {
  const TokenHeader& header = contents_->header;
  const auto count = static_cast<int64_t>(ids.size());
  if (first < 0 || first + count > header.tokens)
    fail("{}: tokens {} to {} are not in a text of {} tokens", {name(), first, first + count, header.tokens});
  // The packed ids go to the front of the target and are widened from the back, where none is overwritten unread.
  const size_t width = header.bytes_per_token;
  const char* packed = reinterpret_cast<const char*>(ids.data());
  const int64_t position = static_cast<int64_t>(sizeof header) + first * static_cast<int64_t>(width);
  if (contents_->file.read(ids.data(), ids.size() * width, position) < ids.size() * width)
    fail("{}: the token file was cut while it was in use, it has no {} tokens any more", {name(), first + count});
  for (size_t i = ids.size(); i-- > 0;) {
    uint32_t id = 0;
    std::memcpy(&id, packed + i * width, width);
    if (id >= header.vocab_size)
      fail("{}: the token file is damaged, id {} at index {} is outside the vocabulary of {}",
           {name(), id, first + static_cast<int64_t>(i), header.vocab_size});
    ids[i] = id;
  }
}

}  // namespace ricci
