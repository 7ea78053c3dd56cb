// Reading a text block by block: .gz through zlib, everything else through libarchive.
#include <archive.h>
#include <archive_entry.h>

#include <algorithm>

#include "core/error.h"
#include "data/text/text_source.h"

namespace ricci {
namespace {

constexpr size_t kBlock = 256 * 1024;

}  // namespace

void TextStream::CloseArchive::operator()(archive* handle) const { archive_read_free(handle); }

void TextStream::fail_reading() const {
  const char* reason = archive_error_string(handle_.get());
  fail("data: cannot read {}: {}", {open_->path(), reason ? reason : "damaged or cut short"});
}

void TextStream::open_file() {
  const TextSource::File& file = source_.files_[file_];
  opened_ = true, yielded_ = false;
  built_in_ = file.built_in.value_or("");
  if (file.built_in) return;
  try {
    open_.emplace(file.path.string());
  } catch (const Error& error) {
    fail("data: {}", {error.what()});
  }
  if (is_gzip(*open_)) gzip_ = std::make_unique<GzipStream>(*open_);
  else open_archive();
}

void TextStream::open_archive() {
  archive* handle = archive_read_new();
  handle_.reset(handle);
  if (!handle) fail("data: out of memory for reading {}", {open_->path()});
  // Only filters with a distinct mark at the start of the file, so that no plain text is taken for a compressed one.
  archive_read_support_filter_zstd(handle);
  archive_read_support_filter_xz(handle);
  archive_read_support_filter_bzip2(handle);
  archive_read_support_format_raw(handle);
  archive_read_support_format_empty(handle);
  archive_entry* entry = nullptr;
  if (archive_read_open_fd(handle, open_->descriptor(), kBlock) != ARCHIVE_OK) fail_reading();
  const int status = archive_read_next_header(handle, &entry);
  if (status == ARCHIVE_EOF) fail("data: {} is empty after decompression", {open_->path()});
  if (status != ARCHIVE_OK) fail_reading();
}

void TextStream::close_file() {
  handle_.reset();
  gzip_.reset();
  open_.reset();
  opened_ = false;
  closed_ += source_.files_[file_].bytes;
  ++file_;
}

int64_t TextStream::bytes_of_files() const {
  if (!opened_) return closed_;
  const int64_t here = gzip_ ? gzip_->bytes_of_file() : handle_ ? archive_filter_bytes(handle_.get(), -1) : 0;
  return closed_ + here;
}

// A block of the open file; empty at its end.
std::string_view TextStream::read_file() {
  if (gzip_) return gzip_->next();
  if (!handle_) {
    const std::string_view block = built_in_.substr(0, kBlock);
    built_in_.remove_prefix(block.size());
    return block;
  }
  const void* data = nullptr;
  size_t bytes = 0;
  la_int64_t position = 0;
  int status = ARCHIVE_OK;
  while (status == ARCHIVE_OK && bytes == 0) status = archive_read_data_block(handle_.get(), &data, &bytes, &position);
  if (status != ARCHIVE_OK && status != ARCHIVE_EOF) fail_reading();
  return status == ARCHIVE_OK ? std::string_view(static_cast<const char*>(data), bytes) : std::string_view();
}

std::string_view TextStream::read_block() {
  for (; file_ < source_.files_.size(); close_file()) {
    if (!opened_) open_file();
    const std::string_view block = read_file();
    yielded_ |= !block.empty();
    if (!block.empty()) return block;
    const TextSource::File& file = source_.files_[file_];
    if (!yielded_ && !file.built_in) fail("data: {} is empty after decompression", {file.path.string()});
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
  std::string rest;   // the unit that is not complete yet
  size_t wanted = 0;  // bytes of it before the question is asked again: a long unit is looked at few times
  int64_t offset = source.first_byte();
  for (std::string_view block = stream.next(); !block.empty(); block = stream.next()) {
    const bool joined = !rest.empty();
    if (joined) block = rest.append(block);
    if (block.size() < wanted) continue;
    const size_t complete = complete_prefix(block);
    if (complete > 0) use(block.substr(0, complete), offset);
    offset += static_cast<int64_t>(complete);
    if (joined) rest.erase(0, complete);
    else rest = block.substr(complete);
    wanted = 2 * rest.size();
  }
  if (!rest.empty()) use(rest, offset);
}

}  // namespace ricci
