// Finding files, and reading them block by block through libarchive.
#include "data/text/text_source.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <system_error>

#include "core/error.h"
#include "core/files/hash.h"

namespace ricci {

namespace fs = std::filesystem;

fs::path find_data(const std::string& path) {
  std::error_code ignored;  // a path that cannot be looked at counts as missing
  if (fs::exists(path, ignored)) return path;
  const char* folder = std::getenv("RICCI_DATA");
  if (!folder || !*folder) fail("data: {} is not there, and $RICCI_DATA, the second place to look, is not set", {path});
  const fs::path second = fs::path(folder) / path;
  if (fs::exists(second, ignored)) return second;
  fail("data: found neither {} nor {} ($RICCI_DATA)", {path, second.string()});
}

namespace {

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

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error, ignored;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::follow_directory_symlink, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    const bool is_folder = entry->is_directory(ignored);
    if (hidden(entry->path())) {
      if (is_folder) entry.disable_recursion_pending();
    } else if (!is_folder) {
      files.push_back(entry->path());
    }
    entry.increment(error);
  }
  if (error) fail("data: cannot list folder {}: {}", {folder.string(), error.message()});
  if (files.empty()) fail("data: folder {} holds no files", {folder.string()});
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TextSource::File TextSource::inspect(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::canonical(path, error);
  const bool regular = !error && fs::is_regular_file(absolute, error);
  if (!error && !regular) fail("data: {} is neither a file nor a folder", {path.string()});
  const auto bytes = regular ? fs::file_size(absolute, error) : 0;
  const auto modified = error ? fs::file_time_type() : fs::last_write_time(absolute, error);
  if (error) fail("data: cannot read {}: {}", {path.string(), error.message()});
  return {absolute, static_cast<int64_t>(bytes),
          std::chrono::duration_cast<std::chrono::nanoseconds>(modified.time_since_epoch()).count()};
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

TextSource TextSource::of_paths(const std::vector<std::string>& paths) {
  if (paths.empty()) fail("data: no file was named");
  TextSource source;
  for (const std::string& path : paths) {
    if (path.empty()) fail("data: an empty file name was given");
    source.add(path);
  }
  return source;
}

TextSource TextSource::part(const std::string& label, int64_t first, int64_t end) const {
  if (first < 0 || first >= end || first_ + end > end_)
    fail("data: {} has no part of bytes {} to {}", {name(), first, end});
  TextSource result = *this;
  result.label_ = label;
  result.first_ = first_ + first;
  result.end_ = first_ + end;
  return result;
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

uint64_t TextSource::content_hash() const {
  std::string identity = format_message("{} {}", {first_, end_});
  for (const File& file : files_) identity += format_message(" {} {}", {file.bytes, file.modified});
  return hash_bytes(identity, place_hash());
}

void TextSource::check_unchanged() const {
  for (const File& file : files_) {
    const File now = inspect(file.path);
    if (now.bytes != file.bytes || now.modified != file.modified)
      fail("data: {} changed while it was in use: it had {} bytes and now has {}, or was written again",
           {file.path.string(), file.bytes, now.bytes});
  }
}

void TextStream::CloseArchive::operator()(archive* handle) const { archive_read_free(handle); }

void TextStream::fail_reading() const {
  const char* reason = archive_error_string(handle_.get());
  fail("data: cannot read {}: {}", {source_.files_[file_].path.string(), reason ? reason : "damaged or cut short"});
}

void TextStream::open_file() {
  constexpr size_t block_bytes = 256 * 1024;
  archive* handle = archive_read_new();
  handle_.reset(handle);
  if (!handle) fail("data: out of memory for reading {}", {source_.files_[file_].path.string()});
  // Only filters with a distinct mark at the start of the file, so that no plain text is taken for a compressed one.
  archive_read_support_filter_gzip(handle);
  archive_read_support_filter_zstd(handle);
  archive_read_support_filter_xz(handle);
  archive_read_support_filter_bzip2(handle);
  archive_read_support_format_raw(handle);
  archive_read_support_format_empty(handle);
  archive_entry* entry = nullptr;
  if (archive_read_open_filename(handle, source_.files_[file_].path.c_str(), block_bytes) != ARCHIVE_OK) fail_reading();
  const int status = archive_read_next_header(handle, &entry);
  if (status == ARCHIVE_EOF) fail("data: {} is empty after decompression", {source_.files_[file_].path.string()});
  if (status != ARCHIVE_OK) fail_reading();
}

std::string_view TextStream::read_block() {
  while (file_ < source_.files_.size()) {
    if (!handle_) open_file();
    const void* data = nullptr;
    size_t bytes = 0;
    la_int64_t position = 0;
    const int status = archive_read_data_block(handle_.get(), &data, &bytes, &position);
    if (status == ARCHIVE_OK && bytes > 0) return {static_cast<const char*>(data), bytes};
    if (status == ARCHIVE_OK) continue;
    if (status != ARCHIVE_EOF) fail_reading();
    handle_.reset();
    ++file_;
  }
  return {};
}

std::string_view TextStream::next() {
  while (read_ < source_.end_) {
    std::string_view block = read_block();
    if (block.empty() && source_.end_ != INT64_MAX)
      fail("data: {} ends at byte {}, but this part of it ends at byte {}", {source_.name(), read_, source_.end_});
    if (block.empty()) return {};
    offset_ = std::max(read_, source_.first_);
    const int64_t start = read_;
    read_ += static_cast<int64_t>(block.size());
    if (read_ <= source_.first_) continue;
    block = block.substr(static_cast<size_t>(offset_ - start));
    return block.substr(0, static_cast<size_t>(source_.end_ - offset_));
  }
  return {};
}

void for_each_piece(const TextSource& source, const std::function<size_t(std::string_view)>& complete_prefix,
                    const std::function<void(std::string_view, int64_t)>& use) {
  TextStream stream(source);
  std::string rest;  // the unit that the last block left unfinished
  int64_t offset = source.first_byte();
  for (std::string_view block = stream.next(); !block.empty(); block = stream.next()) {
    if (!rest.empty()) block = rest.append(block);
    const size_t complete = complete_prefix(block);
    if (complete > 0) use(block.substr(0, complete), offset);
    offset += static_cast<int64_t>(complete);
    rest = std::string(block.substr(complete));
  }
  if (!rest.empty()) use(rest, offset);
}

}  // namespace ricci
