// A file that grows at its end while others read it: logs of a run.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/files/folder.h"

namespace ricci::apps {

class AppendFile {
 public:
  enum class Old { keep, refuse };  // what to do with a file that is there already
  // Opens to append, makes the file if there is none. Error: names the path and the reason; something else than a regular
  // file is in its place.
  explicit AppendFile(const FilePlace& place, Old old = Old::keep) : path_(place.path) {
    const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (place.folder ? O_NOFOLLOW : 0) |
                      (old == Old::refuse ? O_EXCL : 0);
    file_ = Descriptor(::openat(place.folder ? place.folder->descriptor() : AT_FDCWD, place.name.c_str(), flags, 0666));
    struct stat status = {};
    if (!file_ && errno == ELOOP && place.folder) fail("cannot write {}: it is a symbolic link, which is not followed here", {path_});
    if (!file_ || ::fstat(file_.get(), &status) != 0) fail_with_reason();
    if (!S_ISREG(status.st_mode)) fail("cannot write {}: it exists and is not a regular file", {path_});
  }

  const std::string& path() const { return path_; }
  // Handed to the system when this returns. Error: names the path and the reason, such as a full disk.
  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t step = ::write(file_.get(), bytes.data(), bytes.size());
      if (step < 0 && errno != EINTR) fail_with_reason();
      if (step > 0) bytes.remove_prefix(static_cast<size_t>(step));
    }
  }
  // Waits until everything appended is on the disk. Error: names the path and the reason.
  void sync() {
    while (::fdatasync(file_.get()) != 0) {
      if (errno == EINVAL) return;  // some file systems cannot sync
      if (errno != EINTR) fail_with_reason();
    }
  }

 private:
  [[noreturn]] void fail_with_reason() const { fail("cannot write {}: {}", {path_, system_reason()}); }

  std::string path_;
  Descriptor file_;
};

}  // namespace ricci::apps
