// Tar archives through libarchive, which is fed by a TextStream: so every compression that texts may have works for them as well.
#include "data/text/members.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>

#include "core/error.h"

namespace ricci {
namespace {

constexpr size_t kTarBlock = 512;

// POSIX and GNU archives have this word in the header of their first member.
bool is_tar(std::string_view start) { return start.size() >= kTarBlock && start.substr(257, 5) == "ustar"; }

// What a text starts with: enough to recognise an archive, or all of it.
std::string start_of(TextStream& text) {
  std::string start;
  while (start.size() < kTarBlock) {
    const std::string_view block = text.next();
    if (block.empty()) break;
    start += block;
  }
  return start;
}

// A hidden file, or one in a hidden folder.
bool is_hidden(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name.starts_with('.') && name != "." && name != "..") return true;
    begin = end + 1;
  }
  return false;
}

bool is_empty_block(std::string_view bytes) { return bytes.size() == kTarBlock && bytes.find_first_not_of('\0') == bytes.npos; }

}  // namespace

bool is_archive(const TextSource& file) {
  TextStream text(file);
  return is_tar(start_of(text));
}

struct MemberStream::Tar {
  struct Free {
    void operator()(archive* of) const { archive_read_free(of); }
  };
  MemberStream& from;
  std::unique_ptr<archive, Free> handle{archive_read_new()};
  std::exception_ptr error = {};  // of the text below
  int64_t given = 0;              // bytes of the text
  std::string last = {};          // the last of them, a block or fewer

  explicit Tar(MemberStream& of) : from(of) {
    if (!handle) throw std::bad_alloc();
    archive_read_support_format_tar(handle.get());
    if (archive_read_open(handle.get(), this, nullptr, read, nullptr) != ARCHIVE_OK) fail_reading();
  }
  Tar(const Tar&) = delete;

  // Exceptions must not pass through the library.
  static la_ssize_t read(archive* of, void* self, const void** block) {
    Tar& tar = *static_cast<Tar*>(self);
    try {
      std::string_view bytes = tar.from.first_given_ ? tar.from.stream_.next() : std::string_view(tar.from.first_);
      tar.from.first_given_ = true;
      tar.note(bytes);
      *block = bytes.data();
      return static_cast<la_ssize_t>(bytes.size());
    } catch (...) {
      tar.error = std::current_exception();
      archive_set_error(of, EIO, "unreadable");
      return -1;
    }
  }

  void note(std::string_view bytes) {
    given += static_cast<int64_t>(bytes.size());
    last.append(bytes.substr(bytes.size() - std::min(bytes.size(), kTarBlock)));
    last.erase(0, last.size() - std::min(last.size(), kTarBlock));
  }

  // Empty blocks end an archive. The library takes the end of the file for one as well, and so one that was cut between members.
  // A compressed file tells by itself whether it is whole.
  void check_end() const {
    const int64_t consumed = archive_filter_bytes(handle.get(), 0);
    const bool at_end_of_file = consumed == given && (archive_read_header_position(handle.get()) == consumed || !is_empty_block(last));
    if (at_end_of_file && given == from.bytes_on_disk_)
      fail("data: cannot read {}: it has no end, and was cut short behind a member", {from.file_name_});
  }

  [[noreturn]] void fail_reading() const {
    if (error) std::rethrow_exception(error);
    const char* reason = archive_error_string(handle.get());
    fail("data: cannot read {}: {}", {from.file_name_, one_line(reason ? reason : "damaged or cut short")});
  }
};

MemberStream::MemberStream(const TextSource& file)
    : file_name_(file.name()), name_(file_name_), stream_(file), bytes_on_disk_(file.bytes_on_disk()) {}
MemberStream::~MemberStream() = default;

bool MemberStream::next_member() {
  if (!started_) {
    started_ = true;
    first_ = start_of(stream_);
    if (!is_tar(first_)) return true;
    tar_ = std::make_unique<Tar>(*this);
  }
  if (!tar_) return false;
  for (;;) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(tar_->handle.get(), &entry);
    if (status == ARCHIVE_EOF) {
      tar_->check_end();
      return false;
    }
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) tar_->fail_reading();
    const char* const path = archive_entry_pathname(entry);
    if (archive_entry_filetype(entry) != AE_IFREG || !path || is_hidden(path)) continue;
    name_ = file_name_ + ": " + one_line(path);
    return true;
  }
}

std::string_view MemberStream::next() {
  if (!tar_) {
    if (first_given_) return stream_.next();
    first_given_ = true;
    return first_;
  }
  const void* data = nullptr;
  size_t bytes = 0;
  la_int64_t position = 0;
  int status = ARCHIVE_OK;
  while (status == ARCHIVE_OK && bytes == 0) status = archive_read_data_block(tar_->handle.get(), &data, &bytes, &position);
  if (status != ARCHIVE_OK && status != ARCHIVE_EOF) tar_->fail_reading();
  return status == ARCHIVE_OK ? std::string_view(static_cast<const char*>(data), bytes) : std::string_view();
}

}  // namespace ricci
