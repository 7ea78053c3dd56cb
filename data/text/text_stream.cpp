// Reading a text block by block: .gz through zlib, everything else through libarchive.
#include "data/text/text_stream.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>

#include "core/error.h"
#include "data/tokenizers/utf8.h"

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
  opened_ = true;
  yielded_ = false;
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
  if (gzip_) return closed_ + gzip_->bytes_of_file();
  return closed_ + (handle_ ? archive_filter_bytes(handle_.get(), -1) : 0);
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

// Bytes of the block in front of the first byte of this character of the text; all of the block where it is not in it.
size_t TextStream::bytes_up_to(int64_t character) {
  const int64_t here = count_characters(block_), wanted = character - characters_;
  characters_ += std::min(here, wanted);
  if (here <= wanted) return block_.size();
  size_t bytes = 0;
  for (int64_t seen = -1; seen < wanted; ++bytes) seen += count_characters(block_.substr(bytes, 1));
  return bytes - 1;
}

std::string_view TextStream::next() {
  for (;;) {
    if (block_.empty()) block_ = read_block();
    if (block_.empty() && source_.end_ != INT64_MAX && characters_ < source_.end_)
      fail("data: {} ends at character {}, but this part of it ends at character {}", {source_.name(), characters_, source_.end_});
    if (block_.empty()) return {};
    const bool in_part = entered_;
    const int64_t border = in_part ? source_.end_ : source_.first_;
    const size_t bytes = border == INT64_MAX ? block_.size() : bytes_up_to(border);
    entered_ |= bytes < block_.size();
    const std::string_view taken = block_.substr(0, bytes);
    if (in_part && taken.empty()) return {};
    block_.remove_prefix(bytes);
    offset_ = std::exchange(passed_, passed_ + static_cast<int64_t>(bytes));
    if (in_part) return taken;
  }
}

// The last byte that is known waits: it may be the last of the text, and a text ends with a piece.
std::optional<TextPieces::Piece> TextPieces::next() {
  if (ended_) return {};
  held_.erase(0, used_);
  offset_ += static_cast<int64_t>(std::exchange(used_, 0));
  size_t wanted = 0;  // bytes that are known before the question is asked again: a long unit is looked at few times
  for (std::string_view block; !(block = stream_.next()).empty();) {
    if (held_.empty()) offset_ = stream_.offset();
    held_ += block;
    if (held_.size() < std::max<size_t>(wanted, 2)) continue;
    used_ = complete_prefix_(std::string_view(held_).substr(0, held_.size() - 1));
    if (used_ > 0) return Piece{std::string_view(held_).substr(0, used_), offset_, false};
    wanted = 2 * held_.size();
  }
  ended_ = true;
  used_ = held_.size();
  return Piece{held_, offset_, true};
}

void TextPieces::read_rest() {
  stream_.read_rest();
  ended_ = false;
}

void for_each_piece(const TextSource& source, const TextPieces::CompletePrefix& complete_prefix,
    const std::function<void(std::string_view, int64_t)>& use) {
  TextPieces pieces(source, complete_prefix);
  while (const auto piece = pieces.next())
    if (!piece->text.empty()) use(piece->text, piece->offset);
}

}  // namespace ricci
