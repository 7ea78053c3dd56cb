// Files through the system's own calls, so that every failure keeps its reason.
#include "core/files/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace ricci {
namespace {

std::string reason() { return std::generic_category().message(errno); }

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }
  bool close() { return ::close(std::exchange(value_, -1)) == 0; }

 private:
  int value_;
};

// Removes a file at the end of its life unless it was renamed away.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const char* name() const { return path_.c_str(); }
  bool rename_to(const std::filesystem::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  std::filesystem::path path_;
};

// The file that is replaced: where a link leads, as a rename over the link would leave the file behind it unchanged.
std::filesystem::path file_behind(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    fail("cannot write {}: it exists and is not a regular file", {path});
  std::filesystem::path target = path;
  if (std::filesystem::is_symlink(path, error)) target = std::filesystem::weakly_canonical(path, error);
  if (target.filename().empty()) fail("cannot write '{}': it names no file", {path});
  return target;
}

Descriptor open_folder(const std::string& path) { return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

void sync_folder(const Descriptor& folder, const std::string& path) {
  // Some file systems cannot sync a folder and say EINVAL.
  if (!folder || (::fsync(folder.get()) != 0 && errno != EINVAL)) fail("cannot sync folder {}: {}", {path, reason()});
}

// A new file keeps the access rights of the one it replaces.
bool keep_rights(int descriptor, const std::filesystem::path& old) {
  struct stat status = {};
  return ::stat(old.c_str(), &status) != 0 || ::fchmod(descriptor, status.st_mode & 07777) == 0;
}

// A new file, locked, which tells it from what a killed program left. One that remove_abandoned_files took away between the
// two calls is made again. Negative, with errno: it cannot be made.
int create_locked(const char* name) {
  for (;;) {
    const int file = ::open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    struct stat status = {};
    if (file < 0 || ::flock(file, LOCK_EX) != 0 || ::fstat(file, &status) != 0 || status.st_nlink > 0) return file;
    ::close(file);
  }
}

}  // namespace

std::string read_text(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail("cannot read {}: {}", {path, reason()});
  std::string text;
  char block[1 << 16];
  for (;;) {
    const ssize_t step = ::read(file.get(), block, sizeof block);
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) fail("cannot read {}: {}", {path, reason()});
    if (step == 0) return text;
    text.append(block, static_cast<size_t>(step));
  }
}

void make_folders(const std::string& path) {
  const std::filesystem::path folder = path, above = folder.has_parent_path() ? folder.parent_path() : ".";
  std::error_code ignored;
  if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return;
  if (above != folder) make_folders(above.string());
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) fail("{}: cannot be made: {}", {path, reason()});
  if (!std::filesystem::is_directory(folder, ignored)) fail("{}: cannot be made: a file is in its place", {path});
  sync_folder(open_folder(above.string()), above.string());
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // does not wait for a pipe's writer
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0) fail("cannot read {}: {}", {path, reason()});
  if (!S_ISREG(status.st_mode)) fail("cannot read {}: not a regular file", {path});
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;  // an empty range cannot be mapped
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) fail("cannot map {} ({} bytes): {}", {path, size, reason()});
  bytes_ = {static_cast<const char*>(data), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t step = ::write(descriptor_, bytes.data(), bytes.size());
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) fail("cannot write {}: {} (after {} bytes)", {path_, reason(), written_});
    bytes.remove_prefix(static_cast<size_t>(step));
    written_ += step;
  }
}

void write_file_atomically(const std::string& path, const std::function<void(FileWriter&)>& write) {
  const std::filesystem::path target = file_behind(path);
  const std::string folder_name = target.has_parent_path() ? target.parent_path().string() : ".";
  const Descriptor folder = open_folder(folder_name);
  if (!folder) fail("cannot write {}: folder {}: {}", {path, folder_name, reason()});

  const std::string name = "." + target.filename().string() + ".tmp-" + std::to_string(::getpid());
  TemporaryFile temporary(target.parent_path() / name);
  Descriptor file(create_locked(temporary.name()));
  if (!file) fail("cannot write {}: {}", {path, reason()});
  FileWriter writer(path, file.get());
  write(writer);
  // A disk may turn out to be full as late as here. Closed last: until it has its name the file is locked.
  if (!keep_rights(file.get(), target) || ::fsync(file.get()) != 0 || !temporary.rename_to(target) || !file.close())
    fail("cannot write {}: {}", {path, reason()});
  sync_folder(folder, folder_name);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  write_file_atomically(path, [&](FileWriter& writer) { writer.write(bytes); });
}

void remove_abandoned_files(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') || name.find(".tmp-") == name.npos) continue;
    const Descriptor file(::open(entry.path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
  }
}

}  // namespace ricci
