// Files through the system's own calls, so that every failure keeps its reason.
#include "core/files/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace ricci {
namespace {

int base(const FilePlace& place) { return place.folder ? place.folder->descriptor() : AT_FDCWD; }

// Negative, with errno, where there is no file of this name. Errors: all others.
Descriptor open_regular(const FilePlace& place) {
  // O_NONBLOCK: a pipe's writer is not waited for.
  int opened;
  do opened = ::openat(base(place), place.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (opened < 0 && errno == EINTR);
  Descriptor file(opened);
  struct stat status = {};
  if (!file && errno == ENOENT) return file;
  if (!file || ::fstat(file.get(), &status) != 0) fail("cannot read {}: {}", {place.path, system_reason()});
  if (S_ISDIR(status.st_mode)) fail("cannot read {}: {}", {place.path, std::generic_category().message(EISDIR)});
  if (!S_ISREG(status.st_mode)) fail("cannot read {}: not a regular file", {place.path});
  return file;
}

struct stat status_of(const OpenFile& file) {
  struct stat status = {};
  if (::fstat(file.descriptor(), &status) != 0) fail("cannot read {}: {}", {file.path(), system_reason()});
  return status;
}

}  // namespace

// ---- Reading
OpenFile::OpenFile(const FilePlace& place) : path_(place.path), descriptor_(open_regular(place)) {
  if (!descriptor_) fail("cannot read {}: {}", {path_, system_reason()});
}

std::optional<OpenFile> OpenFile::find(const FilePlace& place) {
  Descriptor file = open_regular(place);
  if (!file) return {};
  return OpenFile(place.path, std::move(file));
}

int64_t OpenFile::size() const { return status_of(*this).st_size; }

int64_t OpenFile::changed() const {
  const timespec time = status_of(*this).st_mtim;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

size_t OpenFile::read(void* target, size_t bytes, int64_t position) const {
  size_t done = 0;
  while (done < bytes) {
    char* const next = static_cast<char*>(target) + done;
    const ssize_t step = ::pread(descriptor(), next, bytes - done, position + static_cast<off_t>(done));
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) fail("cannot read {} at byte {}: {}", {path_, position + static_cast<int64_t>(done), system_reason()});
    if (step == 0) break;
    done += static_cast<size_t>(step);
  }
  return done;
}

std::string read_text(const FilePlace& place, int64_t most) {
  const OpenFile file(place);
  const auto refuse = [&] { fail("cannot read {}: it has more than {} bytes", {place.path, most}); };
  std::string text;
  // The size is a hint only: the file may grow, and the system's own files have a size of 0 bytes.
  if (file.size() > most) refuse();
  for (int64_t expected = file.size() + 1;; expected = 1 << 16) {
    const size_t before = text.size();
    text.resize(before + static_cast<size_t>(expected));
    text.resize(before + file.read(text.data() + before, static_cast<size_t>(expected), static_cast<int64_t>(before)));
    if (static_cast<int64_t>(text.size()) > most) refuse();
    if (text.size() < before + static_cast<size_t>(expected)) return text;
  }
}

}  // namespace ricci
