// zlib reads .gz, because libarchive does not compare the length and CRC-32 of its members (RFC 1952). libarchive reads everything else.
// It reads tar archives out of a FileStream, so that every compression works for them as well.
#include "data/text/file_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include "core/error.h"

namespace ricci {
namespace {

using namespace std::string_view_literals;

constexpr size_t kBlock = 256 * 1024, kTarBlock = 512, kTarWordPlace = 257;

// The first bytes of compressed files. A file that ends inside a mark, after at least `enough` of its bytes, was cut there.
constexpr struct Mark {
  const char* format;
  std::string_view bytes;
  size_t enough;
  bool is_read;
} kMarks[] = {{"gzip", "\x1f\x8b\x08"sv, 2, true}, {"zstd", "\x28\xb5\x2f\xfd"sv, 2, true},
    {"xz",
        "\xfd"
        "7zXZ\0"sv,
        2, true},
    {"bzip2", "BZh91AY&SY"sv, 4, true}, {"bzip2", "BZh9\x17rE8P\x90"sv, 4, true}, {"lz4", "\x04\x22\x4d\x18"sv, 4, false},
    {"zip", "PK\x03\x04"sv, 4, false}, {"7z", "7z\xbc\xaf\x27\x1c"sv, 6, false}, {"lzip", "LZIP\x01"sv, 5, false},
    {"compress", "\x1f\x9d\x90"sv, 3, false}, {"lzop", "\x89LZO\0\r\n\x1a\n"sv, 9, false}};
constexpr size_t kLongestMark = 10;

// The format of a file, from its first bytes, or null for a plain file.
const Mark* find_mark(std::string_view bytes) {
  std::string start(bytes.substr(0, kLongestMark));
  if (start.size() > 3 && start[3] >= '1' && start[3] <= '9') start[3] = '9';  // a level of bzip2
  const auto fits = [&](const Mark& mark) {
    const bool is_cut = start.size() >= mark.enough && mark.bytes.starts_with(start);
    return start.starts_with(mark.bytes) || is_cut;
  };
  const auto found = std::find_if(std::begin(kMarks), std::end(kMarks), fits);
  return found == std::end(kMarks) ? nullptr : found;
}

// POSIX and GNU archives have this word at this place in the header of their first member, which may be cut.
constexpr std::string_view kTarWord = "ustar";
bool is_tar(std::string_view start) { return start.size() > kTarWordPlace && start.substr(kTarWordPlace).starts_with(kTarWord); }

// A hidden file, or one in a hidden folder.
bool is_hidden(std::string_view path) {
  const std::filesystem::path parts(path);
  const auto hides = [](const std::filesystem::path& part) { return part.native().starts_with('.') && part != "." && part != ".."; };
  return std::any_of(parts.begin(), parts.end(), hides);
}

bool is_zeros(std::string_view bytes) { return bytes.find_first_not_of('\0') == bytes.npos; }
bool is_empty_block(std::string_view bytes) { return bytes.size() == kTarBlock && is_zeros(bytes); }

[[noreturn]] void fail_reading(const std::string& name, const char* reason) {
  fail("data: cannot read {}: {}", {name, reason ? reason : "damaged or cut short"});
}

// Error: bytes other than the zeros that fill up a block of a tape follow the last compressed stream of a file.
void check_end(const OpenFile& file, int64_t position, const char* format) {
  std::string block(kBlock, '\0');
  while (const size_t bytes = file.read(block.data(), block.size(), position)) {
    if (!is_zeros(std::string_view(block).substr(0, bytes)))
      fail_reading(file.path(), format_message("bytes that are not {} follow its end", {format}).c_str());
    position += static_cast<int64_t>(bytes);
  }
}

// The next block of an archive's entry, or nullopt if it is damaged.
std::optional<std::string_view> read_data(archive* handle) {
  const void* data = nullptr;
  size_t bytes = 0;
  la_int64_t position = 0;
  int status = ARCHIVE_OK;
  while (status == ARCHIVE_OK && bytes == 0) status = archive_read_data_block(handle, &data, &bytes, &position);
  if (status == ARCHIVE_EOF) return "";
  return status == ARCHIVE_OK ? std::optional(std::string_view(static_cast<const char*>(data), bytes)) : std::nullopt;
}

Archive new_archive() {
  Archive handle(archive_read_new());
  if (!handle) throw std::bad_alloc();
  return handle;
}

}  // namespace

void FreeArchive::operator()(archive* handle) const { archive_read_free(handle); }

class GzipStream : z_stream {
 public:
  explicit GzipStream(const OpenFile& file) : z_stream{}, file_(file), packed_(kBlock, '\0'), text_(kBlock, '\0') {
    constexpr int gzip = 16;
    if (inflateInit2(this, gzip + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~GzipStream() { inflateEnd(this); }
  GzipStream(const GzipStream&) = delete;
  int64_t bytes_of_file() const { return read_; }

  // Errors: damaged, cut short, bytes after the last member.
  std::string_view next() {
    next_out = reinterpret_cast<Bytef*>(text_.data());
    avail_out = static_cast<uInt>(text_.size());
    while (avail_out == text_.size()) {
      const bool more = refill();
      if (!inside_ && !more) return {};
      if (!more) fail_reading(file_.path(), "cut short");
      const bool starts = !inside_;
      if (starts) inflateReset(this);
      if (starts && *next_in == 0) {
        check_end(file_, read_ - avail_in, "gzip");
        return {};
      }
      const int status = inflate(this, Z_NO_FLUSH);
      const bool is_sound = status == Z_OK || status == Z_STREAM_END;
      if (!is_sound) fail_reading(file_.path(), starts ? "bytes that are not gzip follow its end" : msg);
      inside_ = status != Z_STREAM_END;
    }
    return std::string_view(text_).substr(0, text_.size() - avail_out);
  }

 private:
  // False at the end of the file.
  bool refill() {
    if (avail_in > 0) return true;
    const size_t got = file_.read(packed_.data(), packed_.size(), read_);
    read_ += static_cast<int64_t>(got);
    next_in = reinterpret_cast<Bytef*>(packed_.data());
    avail_in = static_cast<uInt>(got);
    return got > 0;
  }
  const OpenFile& file_;
  std::string packed_, text_;
  int64_t read_ = 0;    // bytes of the file
  bool inside_ = true;  // a member
};

FileStream::FileStream(const TextFile& file) : built_in_(file.built_in) {
  if (built_in_) return;
  std::array<char, kLongestMark> start{};
  const size_t known = about_data([&] { return file_.emplace(file.path.string()).read(start.data(), start.size(), 0); });
  const Mark* const mark = find_mark({start.data(), known});
  if (mark && !mark->is_read)
    fail("data: {} is compressed as {}, which is not read (.gz .zst .xz .bz2 are); unpack it first", {file_->path(), mark->format});
  if (mark && known < mark->bytes.size()) fail_reading(file_->path(), "cut short");
  if (mark == kMarks) {
    gzip_ = std::make_unique<GzipStream>(*file_);
    return;
  }
  handle_ = new_archive();
  archive* const handle = handle_.get();
  // Only filters with a distinct mark at the start of the file, so that no plain text is taken for a compressed one.
  archive_read_support_filter_zstd(handle);
  archive_read_support_filter_xz(handle);
  archive_read_support_filter_bzip2(handle);
  archive_read_support_format_raw(handle);
  archive_read_support_format_empty(handle);
  archive_entry* entry = nullptr;
  int status = archive_read_open_fd(handle, file_->descriptor(), kBlock);
  if (status == ARCHIVE_OK) status = archive_read_next_header(handle, &entry);
  if (status == ARCHIVE_EOF) fail("data: {} is empty after decompression", {file_->path()});
  if (status != ARCHIVE_OK) fail_reading(file_->path(), archive_error_string(handle));
}

FileStream::~FileStream() = default;

int64_t FileStream::bytes_of_file() const {
  if (gzip_) return gzip_->bytes_of_file();
  return handle_ ? archive_filter_bytes(handle_.get(), -1) : 0;
}

std::string_view FileStream::next() {
  if (built_in_) {
    const std::string_view block = built_in_->substr(0, kBlock);
    built_in_->remove_prefix(block.size());
    return block;
  }
  const auto block = gzip_ ? gzip_->next() : read_data(handle_.get());
  if (!block) fail_reading(file_->path(), archive_error_string(handle_.get()));
  const bool is_unpacked = handle_ && archive_filter_code(handle_.get(), 0) != ARCHIVE_FILTER_NONE;
  // The library takes bytes that begin no stream for the end.
  if (block->empty() && is_unpacked) check_end(*file_, bytes_of_file(), archive_filter_name(handle_.get(), 0));
  yielded_ |= !block->empty();
  if (!yielded_) fail("data: {} is empty after decompression", {file_->path()});
  return *block;
}

struct MemberStream::Tar {
  MemberStream& from;
  Archive handle = new_archive();
  std::exception_ptr error = {};  // thrown by the file below
  int64_t given = 0;              // bytes of the file
  std::string last = {};          // the last of them, a block or fewer

  explicit Tar(MemberStream& members) : from(members) {
    archive_read_support_format_tar(handle.get());
    archive_read_set_option(handle.get(), "tar", "read_concatenated_archives", "1");  // this reads the file to its end, with its checksum
    if (archive_read_open(handle.get(), this, nullptr, read, nullptr) != ARCHIVE_OK) reject();
  }
  Tar(const Tar&) = delete;

  // Exceptions must not pass through the library.
  static la_ssize_t read(archive* handle, void* self, const void** block) {
    Tar& tar = *static_cast<Tar*>(self);
    try {
      const std::string_view bytes = tar.from.next_of_file();
      tar.note(bytes);
      *block = bytes.data();
      return static_cast<la_ssize_t>(bytes.size());
    } catch (...) {
      tar.error = std::current_exception();
      archive_set_error(handle, EIO, "unreadable");
      return -1;
    }
  }

  void note(std::string_view bytes) {
    given += static_cast<int64_t>(bytes.size());
    last.append(bytes.substr(bytes.size() - std::min(bytes.size(), kTarBlock)));
    last.erase(0, last.size() - std::min(last.size(), kTarBlock));
  }

  // Empty blocks end an archive. The library takes the end of the file for one as well, and so one that was cut between members.
  // A compressed file itself shows whether it is whole.
  void check_end() const {
    const int64_t consumed = archive_filter_bytes(handle.get(), 0);
    const bool at_end_of_file = consumed == given && (archive_read_header_position(handle.get()) == consumed || !is_empty_block(last));
    if (at_end_of_file && given == from.bytes_on_disk_) fail_reading(from.file_name_, "it has no end, and was cut short after a member");
  }

  [[noreturn]] void reject() const {
    if (error) std::rethrow_exception(error);
    const char* const reason = archive_error_string(handle.get());
    fail_reading(from.file_name_, reason ? one_line(reason).c_str() : nullptr);
  }
};

MemberStream::MemberStream(const TextFile& file, Encoding encoding)
    : file_name_(file.name()), name_(file_name_), stream_(file), decoder_(encoding), bytes_on_disk_(file.bytes) {
  while (first_.size() < kTarBlock) {
    const std::string_view block = stream_.next();
    if (block.empty()) break;
    first_ += block;
  }
  if (first_.size() >= 2 * kTarBlock && is_zeros(first_)) {  // the end of an archive
    const std::string_view more = stream_.next();
    if (more.empty()) fail("data: {} is a tar archive without members", {file.path.string()});
    first_ += more;
  }
  if (is_tar(first_)) tar_ = std::make_unique<Tar>(*this);
}

MemberStream::~MemberStream() = default;

std::string_view MemberStream::next_of_file() { return std::exchange(first_given_, true) ? stream_.next() : std::string_view(first_); }

bool MemberStream::next_member() {
  if (!tar_) return !std::exchange(started_, true);
  for (;;) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(tar_->handle.get(), &entry);
    if (status == ARCHIVE_EOF) {
      tar_->check_end();
      return false;
    }
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) tar_->reject();
    const char* const path = archive_entry_pathname(entry);
    if (archive_entry_filetype(entry) != AE_IFREG || !path || is_hidden(path)) continue;
    name_ = file_name_ + ": " + one_line(path);
    if (archive_entry_sparse_count(entry) > 0) fail("data: {} is packed with holes, which are not read; pack it without --sparse", {name_});
    in_member_ = false;
    return true;
  }
}

std::string_view MemberStream::next_bytes() {
  if (!tar_) return next_of_file();
  const std::optional<std::string_view> block = read_data(tar_->handle.get());
  if (!block) tar_->reject();
  const Mark* const mark = std::exchange(in_member_, true) ? nullptr : find_mark(*block);
  if (mark) fail("data: {} is compressed as {}; members of an archive are not unpacked", {name_, mark->format});
  return *block;
}

std::string_view MemberStream::next() {
  text_.clear();
  while (text_.empty()) {
    const std::string_view block = next_bytes();
    if (!block.empty()) {
      decoder_.append(block, name_, text_);
      continue;
    }
    decoder_.finish(name_, text_);
    break;
  }
  return text_;
}

}  // namespace ricci
