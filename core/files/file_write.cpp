// Writing: a whole file next to the old one under a temporary name, then renamed over it; or at the end of a file that grows.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/files/file.h"

namespace ricci {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kMark = ".tmp-";

// `error`: the errno in the message.
[[noreturn]] void fail_writing(int error, const std::string& message) {
  if (error == ENOSPC || error == EDQUOT) throw DiskFull(message);
  throw Error(message);
}

// True for the name of a temporary file; if `name` is given, only for one of the file of that name.
bool is_temporary(const std::string& found, const std::string& name) {
  const size_t mark = found.rfind(kMark), digits = mark + kMark.size();
  if (!found.starts_with('.') || mark == found.npos || digits == found.size()) return false;
  if (found.find_first_not_of("0123456789abcdef", digits) != found.npos) return false;
  return name.empty() || found.substr(1, mark - 1) == name;
}

// Removes a file at the end of its life unless it was renamed away.
class TemporaryFile {
 public:
  TemporaryFile(const Folder& folder, std::string name) : folder_(folder), name_(std::move(name)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!name_.empty()) ::unlinkat(folder_.descriptor(), name_.c_str(), 0);
  }
  bool rename_to(const std::string& target) {
    while (::renameat(folder_.descriptor(), name_.c_str(), folder_.descriptor(), target.c_str()) != 0)
      if (errno != EINTR) return false;
    name_.clear();
    return true;
  }

 private:
  const Folder& folder_;
  std::string name_;
};

// The folder and the name of the file that is replaced.
FilePlace target_of(const FilePlace& place) {
  if (place.folder) {
    struct stat status = {};
    const bool there = ::fstatat(place.folder->descriptor(), place.name.c_str(), &status, 0) == 0;
    if (there && !S_ISREG(status.st_mode)) fail("cannot write {}: it exists and is not a regular file", {place.path});
    return place;
  }
  const PathKind kind = look_at(place.path);
  if (kind != PathKind::nothing && kind != PathKind::file) fail("cannot write {}: it exists and is not a regular file", {place.path});
  fs::path target = place.path;
  std::error_code error;
  while (fs::is_symlink(target, error)) target = target.parent_path() / fs::read_symlink(target, error);
  if (target.filename().empty()) fail("cannot write '{}': it names no file", {place.path});
  try {
    return {Folder(target.has_parent_path() ? target.parent_path().string() : "."), target.filename().string()};
  } catch (const Error& problem) {
    fail("cannot write {}: {}", {place.path, problem.what()});
  }
}

bool sync(int descriptor) {
  while (::fsync(descriptor) != 0)
    if (errno != EINTR) return false;
  return true;
}

// A new file keeps the access rights of the one it replaces.
bool keep_rights(int descriptor, const FilePlace& old) {
  struct stat was = {};
  if (::fstatat(old.folder->descriptor(), old.name.c_str(), &was, 0) != 0) return errno == ENOENT;
  return ::fchmod(descriptor, was.st_mode & 0777) == 0;
}

// A new file with a name of its own, locked: the lock distinguishes it from leftovers of a killed program. One that
// remove_abandoned_files took away between the two calls is made again.
Descriptor create_locked(const Folder& folder, const std::string& name, std::string& temporary) {
  for (;;) {
    temporary = "." + name + std::string(kMark) + random_digits();
    Descriptor file(::openat(folder.descriptor(), temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file && (errno == EEXIST || errno == EINTR)) continue;
    if (!file) return file;
    while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat status = {};
    if (::fstat(file.get(), &status) != 0 || status.st_nlink > 0) return file;
  }
}

}  // namespace

std::string random_digits() {
  uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number)
    if (errno != EINTR) fail("the system has no random numbers: {}", {system_reason()});
  constexpr char digits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (char& digit : text) {
    digit = digits[number & 15];
    number >>= 4;
  }
  return text;
}

void FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t step = ::write(file_.descriptor(), bytes.data(), bytes.size());
    if (step < 0 && errno == EINTR) continue;
    if (const int error = errno; step < 0)
      fail_writing(error, format_message("cannot write {}: {} (after {} bytes)", {file_.path(), system_reason(), written_}));
    bytes.remove_prefix(static_cast<size_t>(step));
    written_ += step;
  }
}

void FileWriter::overwrite(int64_t position, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t step = ::pwrite(file_.descriptor(), bytes.data(), bytes.size(), position);
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) fail("cannot write {}: {} (at {} bytes)", {file_.path(), system_reason(), position});
    bytes.remove_prefix(static_cast<size_t>(step));
    position += step;
  }
}

OpenFile write_file_atomically(const FilePlace& place, const std::function<void(FileWriter&)>& write) {
  const FilePlace target = target_of(place);
  const Folder& folder = *target.folder;
  try {
    remove_abandoned_files(folder, target.name);
  } catch (const Error&) {  // a folder that can be written and not be listed
  }
  std::string name;
  Descriptor file = create_locked(folder, target.name, name);
  if (!file) fail("cannot write {}: {}", {place.path, system_reason()});
  TemporaryFile temporary(folder, name);
  FileWriter writer(place.path, std::move(file));
  write(writer);
  // A disk may turn out to be full as late as here.
  const int written = writer.file_.descriptor();
  const bool is_written = keep_rights(written, target) && sync(written) && temporary.rename_to(target.name);
  if (const int error = errno; !is_written) fail_writing(error, format_message("cannot write {}: {}", {place.path, system_reason()}));
  ::flock(written, LOCK_UN);
  folder.sync();
  return std::move(writer.file_);
}

OpenFile write_file_atomically(const FilePlace& place, std::string_view bytes) {
  return write_file_atomically(place, [&](FileWriter& writer) { writer.write(bytes); });
}

AppendFile::AppendFile(const FilePlace& place) : path_(place.path) {
  constexpr int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;  // the writer of a pipe is not waited for
  int opened;
  do opened = ::openat(place.folder ? place.folder->descriptor() : AT_FDCWD, place.name.c_str(), flags, 0666);
  while (opened < 0 && errno == EINTR);
  descriptor_ = Descriptor(opened);
  struct stat status = {};
  if (!descriptor_ || ::fstat(descriptor_.get(), &status) != 0) fail_with_reason();
  if (!S_ISREG(status.st_mode)) fail("cannot write {}: it exists and is not a regular file", {path_});
  if (place.folder) place.folder->sync();  // otherwise a new file could lose its name when the power fails
}

void AppendFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t step = ::write(descriptor_.get(), bytes.data(), bytes.size());
    if (step < 0 && errno != EINTR) fail_with_reason();
    if (step > 0) bytes.remove_prefix(static_cast<size_t>(step));
  }
}

void AppendFile::sync() {
  while (::fdatasync(descriptor_.get()) != 0) {
    if (errno == EINVAL) return;  // some file systems cannot sync
    if (errno != EINTR) fail_with_reason();
  }
}

void remove_file(const FilePlace& place) {
  const int base = place.folder ? place.folder->descriptor() : AT_FDCWD;
  if (::unlinkat(base, place.name.c_str(), 0) != 0 && errno != ENOENT) fail("cannot remove {}: {}", {place.path, system_reason()});
}

void remove_abandoned_files(const Folder& folder, const std::string& name) {
  for (const std::string& found : folder.names()) {
    if (!is_temporary(found, name)) continue;
    const Descriptor file(::openat(folder.descriptor(), found.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlinkat(folder.descriptor(), found.c_str(), 0);
  }
}

}  // namespace ricci
