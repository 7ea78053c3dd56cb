#include "data/text/text.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <system_error>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/files/file.h"
#include "data/text/utf8.h"

namespace ricci {

namespace fs = std::filesystem;

namespace {

// Returns the path as given, and under $RICCI_DATA.
std::vector<fs::path> candidates(const std::string& path) {
  const char* const folder = std::getenv("RICCI_DATA");
  if (!folder || !*folder || path.starts_with('/')) return {path};
  return {path, fs::path(folder) / path};
}

// Returns a note such as "; train.tsv.zst is there", for the file in this folder with the longest common prefix, at least up to the first
// dot.
std::string nearest_file_note(const fs::path& path) {
  const std::string asked = path.filename().string() + ".";  // with the dot, a name with one more suffix is preferred
  std::string nearest;
  auto most = static_cast<int64_t>(asked.find('.'));
  if (most == 0) return "";
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string found = entry.path().filename().string();
    const int64_t alike = std::mismatch(found.begin(), found.end(), asked.begin(), asked.end()).first - found.begin();
    if (alike < most || (alike == most && !nearest.empty() && nearest < found)) continue;
    nearest = found;
    most = alike;
  }
  return nearest.empty() ? "" : "; " + (path.parent_path() / nearest).string() + " is there";
}

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// Follows links, but enters no folder twice: a link can point to a parent folder.
void append_files(const fs::path& path, std::set<std::pair<dev_t, ino_t>>& visited, std::vector<fs::path>& files) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return files.push_back(path);
  if (!visited.insert({status.st_dev, status.st_ino}).second) return;
  for (const std::string& name : names_in(path))
    if (!name.starts_with('.')) append_files(path / name, visited, files);
}

}  // namespace

std::vector<fs::path> files_at(const fs::path& path) {
  std::vector<fs::path> files;
  std::set<std::pair<dev_t, ino_t>> visited;
  about("data", [&] { append_files(path, visited, files); });
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<fs::path> look_for_data(const std::string& path) {
  for (const fs::path& place : candidates(path))
    if (about("data", [&] { return is_there(place); })) return place;
  return {};
}

fs::path find_data(const std::string& path, const char* key) {
  if (const auto found = look_for_data(path)) return *found;
  const std::vector<fs::path> places = candidates(path);
  std::string note = nearest_file_note(places[0]);
  if (note.empty()) note = nearest_file_note(places.back());
  if (path.starts_with('/')) fail("{}: {} does not exist{}", {key, path, note});
  if (places.size() == 1) fail("{}: {} does not exist, and $RICCI_DATA, searched next, is not set{}", {key, path, note});
  fail("{}: found neither {} nor {} ($RICCI_DATA){}", {key, path, places[1].string(), note});
}

TextFile TextSource::inspect(const fs::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) fail("data: cannot read {}: {}", {path.string(), system_reason()});
  if (S_ISFIFO(status.st_mode))
    fail("data: {} is a pipe, expected a file or folder; a text is read more than once, so write it to a file first", {path.string()});
  if (!S_ISREG(status.st_mode)) fail("data: {} is neither a file nor a folder", {path.string()});
  const std::array<int64_t, 4> stamp{
      status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim), static_cast<int64_t>(status.st_ino)};
  return {fs::canonical(path), status.st_size, xxh64(bytes_of(stamp))};
}

TextSource::TextSource(const std::vector<std::string>& paths, std::span<const BuiltInText> built_in) {
  if (paths.empty()) fail("data: no file was named");
  for (const std::string& path : paths) {
    if (path.empty()) fail("data: an empty file name was given");
    const auto known = std::find_if(built_in.begin(), built_in.end(), [&](const BuiltInText& text) { return text.name == path; });
    if (known != built_in.end()) {
      files_.push_back({known->name, static_cast<int64_t>(known->text.size()), xxh64(known->text), known->text});
      continue;
    }
    const fs::path found = find_data(path);
    const std::vector<fs::path> files = files_at(found);
    if (files.empty()) fail("data: the folder {} contains no files", {found.string()});
    for (const fs::path& file : files) {
      files_.push_back(inspect(file));
      if (files_.back().bytes == 0) fail("data: {} is empty", {file.string()});
    }
  }
}

TextSource TextSource::read_as(Encoding encoding) const {
  TextSource result = *this;
  result.encoding_ = encoding;
  return result;
}

int64_t TextSource::bytes_on_disk() const {
  int64_t bytes = 0;
  for (const TextFile& file : files_) bytes += file.bytes;
  return bytes;
}

std::string TextSource::name() const {
  const std::string name = files_[0].name();
  return files_.size() > 1 ? name + format_message(" and {} more", {files_.size() - 1}) : name;
}

uint64_t TextSource::place_hash() const {
  uint64_t hash = hash_bytes(encoding_ == Encoding::utf8 ? "" : name_of(encoding_));
  for (const TextFile& file : files_) hash = hash_bytes(file.path.string(), hash_bytes("\n", hash));
  return hash;
}

uint64_t TextSource::stamp_hash() const {
  std::string stamps;
  for (const TextFile& file : files_) stamps += format_message("{} ", {file.stamp});
  return hash_bytes(stamps);
}

uint64_t TextSource::content_hash() const {
  std::string hashes;
  for (const TextFile& file : files_) {
    const uint64_t bytes = file.built_in ? file.stamp : about("data", [&] { return hash_of_file(File(file.path), 0, file.bytes); });
    hashes += format_message("{} {} ", {file.bytes, bytes});
  }
  return hash_bytes(hashes);
}

void TextSource::check_unchanged() const {
  for (const TextFile& file : files_) {
    if (file.built_in) continue;
    const TextFile now = inspect(file.path);
    if (now.stamp != file.stamp)
      fail("data: {} changed while it was in use (size before: {} bytes, now: {} bytes)", {file.path.string(), file.bytes, now.bytes});
  }
}

}  // namespace ricci
