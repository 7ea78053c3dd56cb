#include "core/files/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace ricci {
namespace {

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

int open_folder(int base, const char* name) {
  int opened;
  do opened = ::openat(base, name, kOpenFolder);
  while (opened < 0 && errno == EINTR);
  return opened;
}

}  // namespace

Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

Folder::Folder(const std::string& path) : path_(path) {
  const int opened = open_folder(AT_FDCWD, path.c_str());
  if (opened < 0) fail("folder {}: {}", {path, system_reason()});
  descriptor_ = std::make_shared<Descriptor>(opened);
}

std::optional<Folder> Folder::find(const std::string& name) const {
  const int opened = open_folder(descriptor(), name.c_str());
  if (opened >= 0) return Folder(path_ + "/" + name, opened);
  if (errno == ENOENT) return {};
  fail("folder {}/{}: {}", {path_, name, errno == ENOTDIR ? "a file is in its place" : system_reason()});
}

Folder Folder::make(const std::string& name) const {
  if (const auto found = find(name)) return *found;
  const bool is_new = ::mkdirat(descriptor(), name.c_str(), 0777) == 0;
  if (!is_new && errno != EEXIST) fail("{}/{}: cannot be made: {}", {path_, name, system_reason()});
  try {
    sync();
    if (const auto made = find(name)) return *made;
  } catch (const Error&) {
    if (is_new) ::unlinkat(descriptor(), name.c_str(), AT_REMOVEDIR);
    throw;
  }
  fail("folder {}/{}: a link in its place leads nowhere", {path_, name});
}

std::vector<std::string> Folder::names() const {
  const int again = open_folder(descriptor(), ".");  // with a position of its own
  DIR* const list = again < 0 ? nullptr : ::fdopendir(again);
  if (!list) {
    const std::string why = system_reason();
    if (again >= 0) ::close(again);
    fail("folder {}: cannot be listed: {}", {path_, why});
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> closing(list, ::closedir);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(list);
    if (!entry && errno != 0) fail("folder {}: cannot be listed: {}", {path_, system_reason()});
    if (!entry) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void Folder::sync() const {
  while (::fsync(descriptor()) != 0) {
    if (errno == EINVAL) return;
    if (errno != EINTR) fail("cannot sync folder {}: {}", {path_, system_reason()});
  }
}

bool Folder::lock() const {
  while (::flock(descriptor(), LOCK_EX | LOCK_NB) != 0)
    if (errno != EINTR) return errno != EWOULDBLOCK;
  return true;
}

void Folder::wait_for_lock() const {
  while (::flock(descriptor(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

bool Folder::removed() const {
  struct stat status = {};
  // A folder that cannot be looked at counts as there, because a program that makes another one for it would do so again and again.
  return ::fstat(descriptor(), &status) == 0 && status.st_nlink == 0;
}

PathKind look_at(const std::string& path) {
  struct stat status = {};
  while (::stat(path.c_str(), &status) != 0) {
    // No file has a name that is too long.
    if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return PathKind::nothing;
    if (errno != EINTR) fail("cannot read {}: {}", {path, system_reason()});
  }
  if (S_ISREG(status.st_mode)) return PathKind::file;
  return S_ISDIR(status.st_mode) ? PathKind::folder : PathKind::other;
}

std::vector<std::string> make_folders(const std::string& path, unsigned rights) {
  const std::filesystem::path folder = path, above = folder.has_parent_path() ? folder.parent_path() : ".";
  std::error_code ignored;
  if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return {};
  std::vector<std::string> made;
  if (above != folder) made = make_folders(above.string(), rights);
  if (folder.filename().empty()) return made;  // a slash at the end
  if (::mkdir(folder.c_str(), rights) == 0) made.push_back(path);
  else if (errno != EEXIST) fail("{}: cannot be made: {}", {path, system_reason()});
  if (!std::filesystem::is_directory(folder, ignored)) fail("{}: cannot be made: a file is in its place", {path});
  Folder(above.string()).sync();
  return made;
}

}  // namespace ricci
