#include "apps/run/metrics/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace ricci::apps {
namespace {

[[noreturn]] void fail_with_reason(const std::string& path) { fail("cannot write {}: {}", {path, std::generic_category().message(errno)}); }

}  // namespace

AppendFile::AppendFile(const FilePlace& place, Old old) : path_(place.path) {
  const int flags =
      O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (place.folder ? O_NOFOLLOW : 0) | (old == Old::refuse ? O_EXCL : 0);
  file_ = Descriptor(::openat(place.folder ? place.folder->descriptor() : AT_FDCWD, place.name.c_str(), flags, 0666));
  struct stat status = {};
  if (!file_ && errno == ELOOP && place.folder) fail("cannot write {}: it is a symbolic link, which is not followed here", {path_});
  if (!file_ || ::fstat(file_.get(), &status) != 0) fail_with_reason(path_);
  if (!S_ISREG(status.st_mode)) fail("cannot write {}: it exists and is not a regular file", {path_});
}

void AppendFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t step = ::write(file_.get(), bytes.data(), bytes.size());
    if (step < 0 && errno != EINTR) fail_with_reason(path_);
    if (step > 0) bytes.remove_prefix(static_cast<size_t>(step));
  }
}

void AppendFile::sync() {
  // Some file systems cannot sync and say EINVAL.
  while (::fdatasync(file_.get()) != 0)
    if (errno != EINTR) return errno == EINVAL ? void() : fail_with_reason(path_);
}

}  // namespace ricci::apps
