// libarchive reads all files: plain, compressed and archives. zlib unpacks .gz files first: libarchive 3.6 checks neither the CRC-32 nor
// the length of gzip members, and misses most damage.
#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include "core/error.h"
#include "core/files/file.h"
#include "data/text/text.h"

namespace ricci {
namespace {

constexpr size_t kBlock = 256 << 10;

// The compression format, from the first bytes of a file; empty if unknown.
std::string_view compression_of(std::string_view start) {
  if (start.starts_with("\x1f\x8b")) return "gzip";
  if (start.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  if (start.starts_with("\xfd\x37zXZ")) return "xz";
  return start.starts_with("BZh") && start.find("1AY&SY") == 4 ? "bzip2" : "";
}

bool is_hidden(const std::filesystem::path& path) {  // or in a hidden folder
  const auto hides = [](const std::filesystem::path& part) { return part.native().starts_with('.') && part != "." && part != ".."; };
  return std::any_of(path.begin(), path.end(), hides);
}

bool is_zeros(std::string_view bytes) { return bytes.find_first_not_of('\0') == bytes.npos; }

}  // namespace

class TextStream::File : z_stream {
 public:
  File(const TextFile& file, bool is_tar) : z_stream{}, file_(file), is_tar_(is_tar) {}
  ~File();
  File(const File&) = delete;

  bool next_member(std::string& name);
  std::string_view next(const std::string& name);
  int64_t position() const { return position_; }  // in the file

 private:
  void open();
  static la_ssize_t give(archive* handle, void* self, const void** block);
  std::string_view read_file(int64_t& position);
  std::string_view unpack();
  void check_end();
  void check_zeros(int64_t position, const char* format);
  [[noreturn]] void reject(const std::string& reason) const { fail("data: cannot read {}: {}", {file_.path.string(), reason}); }
  [[noreturn]] void reject();

  const TextFile& file_;
  const bool is_tar_;
  std::optional<ricci::File> open_;  // empty for a built-in text
  std::string block_ = std::string(kBlock, '\0'), unpacked_ = {};
  int64_t position_ = 0;
  bool is_gzip_ = false, in_gzip_ = true;  // in_gzip_: inside a member of the .gz
  archive* handle_ = nullptr;
  std::exception_ptr error_;  // thrown while libarchive was reading
  bool in_member_ = false;
};

void TextStream::File::open() {
  handle_ = archive_read_new();
  if (!handle_) throw std::bad_alloc();
  if (!file_.built_in) about("data", [&] { open_.emplace(file_.path.string()); });
  int64_t start = 0;
  is_gzip_ = open_ && compression_of(read_file(start)) == "gzip";
  if (is_gzip_) {
    constexpr int gzip = 16;
    unpacked_.resize(kBlock);
    if (inflateInit2(this, gzip + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  } else if (open_) {  // only formats with a clear signature, so a plain text is never read as compressed
    archive_read_support_filter_zstd(handle_);
    archive_read_support_filter_xz(handle_);
    archive_read_support_filter_bzip2(handle_);
  }
  if (is_tar_) {
    archive_read_support_format_tar(handle_);
    archive_read_set_option(handle_, "tar", "read_concatenated_archives", "1");  // reads the file to its end, including the checksum
  } else {
    archive_read_support_format_raw(handle_);
    archive_read_support_format_empty(handle_);
  }
  if (archive_read_open(handle_, this, nullptr, give, nullptr) != ARCHIVE_OK) reject();
}

TextStream::File::~File() {
  archive_read_free(handle_);
  inflateEnd(this);
}

// Gives libarchive the next block. Exceptions must not pass through libarchive.
la_ssize_t TextStream::File::give(archive* handle, void* self, const void** block) {
  File& file = *static_cast<File*>(self);
  try {
    const std::string_view bytes = file.is_gzip_ ? file.unpack() : file.read_file(file.position_);
    *block = bytes.data();
    return std::ssize(bytes);
  } catch (...) {
    file.error_ = std::current_exception();
    archive_set_error(handle, EIO, "unreadable");
    return -1;
  }
}

// Reads the block at this position and moves the position past it.
std::string_view TextStream::File::read_file(int64_t& position) {
  std::string_view block;
  if (file_.built_in) block = file_.built_in->substr(static_cast<size_t>(position), kBlock);
  else block = {block_.data(), about("data", [&] { return open_->read(block_.data(), kBlock, position); })};
  position += std::ssize(block);
  return block;
}

std::string_view TextStream::File::unpack() {
  next_out = reinterpret_cast<Bytef*>(unpacked_.data());
  avail_out = kBlock;
  while (avail_out > 0) {
    if (avail_in == 0) {
      avail_in = static_cast<uInt>(read_file(position_).size());
      next_in = reinterpret_cast<Bytef*>(block_.data());
    }
    const bool starts = !in_gzip_;
    if (starts && (avail_in == 0 || *next_in != 0x1f)) break;
    if (avail_in == 0) reject("cut short");
    if (starts) inflateReset(this);
    const int status = inflate(this, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) reject(starts ? "bytes that are not gzip follow its end" : msg);
    in_gzip_ = status != Z_STREAM_END;
  }
  if (avail_out == kBlock) check_zeros(position_ - avail_in, "gzip");
  return std::string_view(unpacked_).substr(0, kBlock - avail_out);
}

// Error: bytes other than the zero padding of a tape block follow the last compressed stream.
void TextStream::File::check_zeros(int64_t position, const char* format) {
  for (std::string_view rest; !(rest = read_file(position)).empty();)
    if (!is_zeros(rest)) reject(format_message("bytes that are not {} follow its end", {format}));
}

// Error: bytes follow the last compressed stream, or the zeros at the end of an archive are missing. libarchive accepts both, even if the
// file was cut between two members.
void TextStream::File::check_end() {
  if (archive_filter_code(handle_, 0) != ARCHIVE_FILTER_NONE)
    return check_zeros(archive_filter_bytes(handle_, -1), archive_filter_name(handle_, 0));
  if (is_gzip_ || !is_tar_) return;
  const int64_t end = archive_filter_bytes(handle_, 0);
  int64_t last_block = end - 512;
  if (archive_read_header_position(handle_) == end || !is_zeros(read_file(last_block)))
    reject("the end of the archive is missing: it was cut short after a member");
}

void TextStream::File::reject() {
  if (error_) std::rethrow_exception(error_);
  // libarchive reports a damaged compressed archive as truncated.
  const bool is_packed_tar = is_tar_ && archive_filter_code(handle_, 0) != ARCHIVE_FILTER_NONE;
  const char* const reason = is_packed_tar ? nullptr : archive_error_string(handle_);
  reject(reason ? one_line(reason, 255) : "damaged or cut short");
}

bool TextStream::File::next_member(std::string& name) {
  if (!handle_) open();
  for (;;) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(handle_, &entry);
    if (status == ARCHIVE_EOF) {
      check_end();
      if (archive_file_count(handle_) == 0 && !file_.built_in) fail("data: {} is empty after decompression", {file_.path.string()});
      return false;
    }
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) reject();
    name = file_.name();
    in_member_ = false;
    if (!is_tar_) return true;
    const char* const path = archive_entry_pathname(entry);
    if (archive_entry_filetype(entry) != AE_IFREG || !path || is_hidden(path)) continue;
    name += ": " + one_line(path);
    if (archive_entry_sparse_count(entry) > 0) fail("data: {} is a sparse member; to read it, pack the archive without --sparse", {name});
    return true;
  }
}

std::string_view TextStream::File::next(const std::string& name) {
  const void* data = nullptr;
  size_t bytes = 0;
  la_int64_t position = 0;
  int status = ARCHIVE_OK;
  while (status == ARCHIVE_OK && bytes == 0) status = archive_read_data_block(handle_, &data, &bytes, &position);
  if (status == ARCHIVE_EOF) return {};
  if (status != ARCHIVE_OK) reject();
  const std::string_view block(static_cast<const char*>(data), bytes);
  if (const std::string_view format = compression_of(block); !format.empty() && is_tar_ && !in_member_)
    fail("data: {} is compressed as {}; archive members must not be compressed", {name, format});
  in_member_ = true;
  return block;
}

// POSIX and GNU archives contain the word "ustar" in the header of their first member. libarchive would also accept 512 zeros as an
// archive, but an audio recording can start with silence.
bool TextStream::is_archive(const TextFile& file) {
  if (file.built_in) return false;
  File start(file, false);
  if (!start.next_member(name_)) return false;
  const std::string_view block = start.next(name_);
  return block.size() > 257 && block.substr(257).starts_with("ustar");
}

TextStream::TextStream(const TextSource& source, int64_t first_file) : source_(source), file_(first_file), decoder_(source.encoding()) {
  for (int64_t i = 0; i < first_file; ++i) closed_ += source_.files()[static_cast<size_t>(i)].bytes;
}

TextStream::~TextStream() = default;

int64_t TextStream::bytes_of_files() const { return closed_ + (open_ ? open_->position() : 0); }

bool TextStream::next_member() {
  for (; file_ < std::ssize(source_.files()); ++file_) {
    const TextFile& file = source_.files()[static_cast<size_t>(file_)];
    if (!open_) open_ = std::make_unique<File>(file, is_archive(file));
    if (open_->next_member(name_)) return true;
    open_.reset();
    closed_ += file.bytes;
  }
  return false;
}

std::string_view TextStream::next() {
  text_.clear();
  for (bool has_more = true; has_more && text_.empty();) {
    const std::string_view block = open_->next(name_);
    has_more = !block.empty();
    if (has_more) decoder_.append(block, name_, text_);
    else decoder_.finish(name_, text_);
  }
  return text_;
}

}  // namespace ricci
