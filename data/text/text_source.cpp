// Finding files, and what tells one text from another.
#include "data/text/text_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <set>
#include <system_error>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/files/file.h"

namespace ricci {

namespace fs = std::filesystem;

fs::path find_data(const std::string& path) {
  std::error_code ignored;  // a path that cannot be looked at counts as missing
  if (fs::exists(path, ignored)) return path;
  if (path.starts_with('/')) fail("data: {} is not there", {path});
  const char* folder = std::getenv("RICCI_DATA");
  if (!folder || !*folder) fail("data: {} is not there, and $RICCI_DATA, the second place to look, is not set", {path});
  const fs::path second = fs::path(folder) / path;
  if (fs::exists(second, ignored)) return second;
  fail("data: found neither {} nor {} ($RICCI_DATA)", {path, second.string()});
}

namespace {

// Seconds. Two changes within one tick of a file system's clock leave the same time; the coarsest clocks tick every two seconds.
constexpr int64_t kSettled = 3;

std::vector<std::string> split_at_commas(const std::string& paths) {
  std::error_code ignored;
  if (fs::exists(paths, ignored)) return {paths};
  std::vector<std::string> list;
  for (size_t at = 0; at <= paths.size();) {
    const size_t comma = std::min(paths.find(',', at), paths.size());
    list.push_back(paths.substr(at, comma - at));
    at = comma + 1;
  }
  return list;
}

// The files below a folder. Links are followed, but no folder is entered twice: links may lead back to where they are.
class FolderWalk {
 public:
  explicit FolderWalk(const fs::path& folder) {
    try {
      enter(folder);
    } catch (const Error& error) {
      fail("data: {}", {error.what()});
    }
  }
  std::vector<fs::path> files;

 private:
  void enter(const fs::path& path) {
    const Folder folder(path.string());
    struct stat status = {};
    if (::fstat(folder.descriptor(), &status) != 0 || !visited_.insert({status.st_dev, status.st_ino}).second) return;
    for (const std::string& name : folder.names()) {
      if (name.starts_with('.')) continue;
      std::error_code ignored;  // what cannot be looked at is no folder, and a later error when it is read
      if (fs::is_directory(path / name, ignored)) enter(path / name);
      else files.push_back(path / name);
    }
  }
  std::set<std::pair<dev_t, ino_t>> visited_;
};

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files = FolderWalk(folder).files;
  if (files.empty()) fail("data: folder {} holds no files", {folder.string()});
  std::sort(files.begin(), files.end());
  return files;
}

uint64_t hash_of_bytes(const std::string& path, int64_t bytes) {
  try {
    return hash_of_file(OpenFile(path), 0, bytes);
  } catch (const Error& problem) {
    fail("data: {}", {problem.what()});
  }
}

}  // namespace

TextSource::File TextSource::inspect(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::canonical(path, error);
  const bool regular = !error && fs::is_regular_file(absolute, error);
  if (!error && !regular) fail("data: {} is neither a file nor a folder", {path.string()});
  if (error) fail("data: cannot read {}: {}", {path.string(), error.message()});
  struct stat status = {};
  if (::stat(absolute.c_str(), &status) != 0) fail("data: cannot read {}: {}", {path.string(), system_reason()});
  const auto nanoseconds = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  const std::array<int64_t, 4> stamp{
      status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim), static_cast<int64_t>(status.st_ino)};
  const bool settled = std::max(status.st_mtim.tv_sec, status.st_ctim.tv_sec) + kSettled <= std::time(nullptr);
  return {absolute, status.st_size, xxh64({reinterpret_cast<const char*>(stamp.data()), sizeof stamp}), settled};
}

void TextSource::add(const std::string& path) {
  const fs::path found = find_data(path);
  std::error_code ignored;
  const bool folder = fs::is_directory(found, ignored);
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

TextSource TextSource::part(const std::string& label, int64_t first, int64_t end) const {
  if (first < 0 || first >= end || (end != INT64_MAX && end > end_ - first_))
    fail("data: {} has no part of characters {} to {}", {name(), first, end});
  TextSource result = as(label);
  result.first_ = first_ + first;
  result.end_ = end == INT64_MAX ? end_ : first_ + end;
  return result;
}

TextSource TextSource::as(const std::string& label) const {
  TextSource result = *this;
  result.label_ = label;
  return result;
}

std::vector<TextSource> TextSource::each_file() const {
  std::vector<TextSource> all;
  for (const File& file : files_) {
    TextSource one;
    one.files_ = {file};
    all.push_back(std::move(one));
  }
  return all;
}

int64_t TextSource::bytes_on_disk() const {
  int64_t bytes = 0;
  for (const File& file : files_) bytes += file.bytes;
  return bytes;
}

std::string TextSource::name() const {
  std::string name = files_[0].path.filename().string();
  if (files_.size() > 1) name += format_message(" and {} more", {files_.size() - 1});
  return label_.empty() ? name : name + " (" + label_ + ")";
}

uint64_t TextSource::place_hash() const {
  uint64_t hash = hash_bytes(label_);
  for (const File& file : files_) hash = hash_bytes(file.path.string(), hash_bytes("\n", hash));
  return hash;
}

uint64_t TextSource::stamp_hash() const {
  std::string stamps;
  for (const File& file : files_) stamps += format_message("{} ", {file.stamp});
  return hash_bytes(stamps, place_hash());
}

bool TextSource::is_settled() const {
  return std::all_of(files_.begin(), files_.end(), [](const File& file) { return file.settled; });
}

uint64_t TextSource::content_hash() const {
  std::string identity = format_message("{} {}", {first_, end_});
  for (const File& file : files_) {
    const uint64_t hash = file.built_in ? file.stamp : hash_of_bytes(file.path.string(), file.bytes);
    identity += format_message(" {} {}", {file.bytes, std::to_string(hash)});
  }
  return hash_bytes(identity, place_hash());
}

void TextSource::check_unchanged() const {
  for (const File& file : files_) {
    if (file.built_in) continue;
    const File now = inspect(file.path);
    if (now.bytes != file.bytes || now.stamp != file.stamp)
      fail("data: {} changed while it was in use: it had {} bytes and now has {}, or others", {file.path.string(), file.bytes, now.bytes});
  }
}

}  // namespace ricci
