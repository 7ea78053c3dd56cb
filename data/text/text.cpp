#include "data/text/text.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <set>
#include <system_error>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/files/file.h"
#include "data/text/utf8.h"

namespace ricci {

namespace fs = std::filesystem;

namespace {

// The places of a path: as it is given, and under $RICCI_DATA.
std::vector<fs::path> places_of(const std::string& path) {
  const char* const folder = std::getenv("RICCI_DATA");
  if (!folder || !*folder || path.starts_with('/')) return {path};
  return {path, fs::path(folder) / path};
}

}  // namespace

std::optional<fs::path> look_for_data(const std::string& path) {
  for (const fs::path& place : places_of(path))
    if (about("data", [&] { return is_there(place); })) return place;
  return {};
}

namespace {

// "; train.tsv.zst is there": the file in the same folder whose name begins most like this one, at least up to its first dot.
std::string nearest_note(const fs::path& path) {
  const std::string asked = path.filename().string() + ".";  // so the same name with one more ending comes first
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

}  // namespace

fs::path find_data(const std::string& path, const char* key) {
  if (const auto found = look_for_data(path)) return *found;
  const std::vector<fs::path> places = places_of(path);
  std::string note = nearest_note(places[0]);
  if (note.empty()) note = nearest_note(places.back());
  if (path.starts_with('/')) fail("{}: {} is not there{}", {key, path, note});
  if (places.size() == 1) fail("{}: {} is not there, and $RICCI_DATA, the second place to look, is not set{}", {key, path, note});
  fail("{}: found neither {} nor {} ($RICCI_DATA){}", {key, path, places[1].string(), note});
}

namespace {

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// False while another change could leave the same time, because the clock of the file system has not ticked since. Clocks that count parts
// of a second tick at least every 10 ms, and the others every two seconds.
bool has_passed(const timespec& time) {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(time) + (time.tv_nsec == 0 ? 3'000'000'000 : 50'000'000) <= nanoseconds(now);
}

std::vector<std::string> split_at_commas(const std::string& paths) {
  if (about("data", [&] { return is_there(paths); })) return {paths};
  std::vector<std::string> list;
  for (size_t begin = 0; begin <= paths.size();) {
    const size_t comma = std::min(paths.find(',', begin), paths.size());
    list.push_back(paths.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return list;
}

// Appends the files below a folder. Links are followed, but no folder is entered twice: links may lead back to where they are.
void append_files(const fs::path& path, std::set<std::pair<dev_t, ino_t>>& visited, std::vector<fs::path>& files) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !visited.insert({status.st_dev, status.st_ino}).second) return;
  for (const std::string& name : names_in(path)) {
    if (name.starts_with('.')) continue;
    std::error_code ignored;  // what cannot be looked at is no folder, and a later error when it is read
    if (fs::is_directory(path / name, ignored)) append_files(path / name, visited, files);
    else files.push_back(path / name);
  }
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::set<std::pair<dev_t, ino_t>> visited;
  about("data", [&] { append_files(folder, visited, files); });
  if (files.empty()) fail("data: folder {} holds no files", {folder.string()});
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TextFile TextSource::inspect(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::fifo)
    fail("data: {} is neither a file nor a folder but a pipe; a text is read more than once: write it to a file first", {path.string()});
  if (!error && type != fs::file_type::regular) fail("data: {} is neither a file nor a folder", {path.string()});
  const fs::path absolute = error ? path : fs::canonical(path, error);
  if (error) fail("data: cannot read {}: {}", {path.string(), error.message()});
  struct stat status = {};
  if (::stat(absolute.c_str(), &status) != 0) fail("data: cannot read {}: {}", {path.string(), system_reason()});
  const std::array<int64_t, 4> stamp{
      status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim), static_cast<int64_t>(status.st_ino)};
  return {absolute, status.st_size, xxh64(bytes_of(stamp)), has_passed(status.st_mtim) && has_passed(status.st_ctim)};
}

void TextSource::add(const std::string& path) {
  const fs::path found = find_data(path);
  const bool folder = about("data", [&] { return is_folder(found); });
  for (const fs::path& file : folder ? files_below(found) : std::vector{found}) {
    files_.push_back(inspect(file));
    if (files_.back().bytes == 0) fail("data: {} is empty", {file.string()});
  }
}

TextSource::TextSource(const std::string& paths) : TextSource(of_paths(split_at_commas(paths))) {}

TextSource TextSource::of_paths(const std::vector<std::string>& paths, std::span<const BuiltInText> built_in) {
  if (paths.empty()) fail("data: no file was named");
  TextSource source;
  for (const std::string& path : paths) {
    const auto known = std::find_if(built_in.begin(), built_in.end(), [&](const BuiltInText& text) { return text.name == path; });
    if (path.empty()) fail("data: an empty file name was given");
    if (known == built_in.end()) source.add(path);
    else source.files_.push_back({known->name, static_cast<int64_t>(known->text.size()), xxh64(known->text), true, known->text});
  }
  return source;
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

namespace {

uint64_t hash_of_bytes(const TextFile& file) {
  if (file.built_in) return file.stamp;
  return about("data", [&] { return hash_of_file(File(file.path), 0, file.bytes); });
}

}  // namespace

uint64_t TextSource::stamp_hash() const {
  std::string stamps;
  for (const TextFile& file : files_) stamps += format_message("{} ", {file.settled ? file.stamp : hash_of_bytes(file)});
  return hash_bytes(stamps, place_hash());
}

std::vector<uint64_t> TextSource::content_hashes() const {
  std::vector<uint64_t> hashes;
  TextSource one = *this;
  for (const TextFile& file : files_) {
    one.files_ = {file};
    hashes.push_back(hash_bytes(format_message("{} {} {} {}", {0, INT64_MAX, file.bytes, hash_of_bytes(file)}), one.place_hash()));
  }
  return hashes;
}

void TextSource::check_unchanged() const {
  for (const TextFile& file : files_) {
    if (file.built_in) continue;
    const TextFile now = inspect(file.path);
    if (now.bytes != file.bytes || now.stamp != file.stamp)
      fail("data: {} changed while it was in use: it had {} bytes and now has {}, or others", {file.path.string(), file.bytes, now.bytes});
  }
}

}  // namespace ricci
