// Files that survive a crash. A program that overwrites a file and is killed halfway loses both the old version and the new one. So
// write_atomically takes four steps:
//   write    the bytes into a temporary file in the same folder. A rename to a different file system is not atomic.
//   fsync    the temporary file. Without this, the new name can reach the disk before the bytes. A power cut then leaves an empty file.
//   rename   it to its final name. Readers see the old file or the new one, never a partial file.
//   fsync    the folder. Without this, a power cut could undo the rename.
// All steps are system calls. The standard library's streams neither sync nor report the reason for a failure.
#include "core/files/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <regex>
#include <system_error>

namespace ricci {
namespace {

namespace fs = std::filesystem;

// Repeats a system call that a signal interrupted.
template <class Call> auto retry(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

Descriptor open_descriptor(const std::string& path, int flags) {
  const int opened = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  const auto close = [](const int* descriptor) {
    ::close(*descriptor);
    delete descriptor;
  };
  return opened < 0 ? nullptr : Descriptor(new int(opened), close);
}

bool sync_to_disk(const Descriptor& descriptor) {
  return retry([&] { return ::fsync(*descriptor); }) == 0 || errno == EINVAL;  // EINVAL: this file system cannot sync
}

[[noreturn]] void fail_writing(const std::string& path, const std::string& detail = "") {
  const bool is_full = errno == ENOSPC || errno == EDQUOT;
  const std::string message = format_message("cannot write {}: {}{}", {path, system_reason(), detail});
  if (is_full) throw DiskFull(message);
  throw Error(message);
}

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

Descriptor open_folder(const std::string& folder, const std::string& task = "") {
  Descriptor opened = open_descriptor(folder, O_RDONLY | O_DIRECTORY);
  if (!opened) fail("{}folder {}: {}", {task, folder, system_reason()});
  return opened;
}

void sync_folder(const std::string& folder, const Descriptor& opened) {
  if (!sync_to_disk(opened)) fail("cannot sync folder {}: {}", {folder, system_reason()});
}

}  // namespace

// ---- Writing
void write_atomically(const std::string& path, const std::function<void(FileWriter&)>& write) {
  const std::string name = fs::path(path).filename(), folder = folder_of(path);
  if (name.empty()) fail("cannot write '{}': the path has no file name", {path});
  const PathKind before = look_at(path);
  if (before != PathKind::nothing && before != PathKind::file) fail("cannot write {}: it exists and is not a regular file", {path});
  const Descriptor opened = open_folder(folder, "cannot write " + path + ": ");
  remove_temporaries(folder, name);
  std::random_device random;  // gives each writer a different name; if an earlier writer is still active, its rename now fails
  const std::string temporary = format_message("{}/.{}.tmp-{:08x}{:08x}", {folder, name, random(), random()});
  FileWriter writer(path, open_descriptor(temporary, O_RDWR | O_CREAT | O_EXCL));
  if (!writer.descriptor_) fail_writing(path);
  std::string unfinished = temporary;
  try {
    write(writer);
    if (!sync_to_disk(writer.descriptor_)) fail_writing(path);  // some file systems report a full disk only here
    if (retry([&] { return ::rename(temporary.c_str(), path.c_str()); }) != 0) fail_writing(path);
    unfinished = before == PathKind::nothing ? path : "";  // a caller that tries again must not find a new file
    sync_folder(folder, opened);
  } catch (...) {
    if (!unfinished.empty()) ::unlink(unfinished.c_str());
    throw;
  }
}

void write_atomically(const std::string& path, std::string_view bytes) {
  write_atomically(path, [&](FileWriter& writer) { writer.write(bytes); });
}

void FileWriter::write(std::string_view bytes) {
  overwrite(written_, bytes);
  written_ += std::ssize(bytes);
}

void FileWriter::overwrite(int64_t position, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t step = retry([&] { return ::pwrite(*descriptor_, bytes.data(), bytes.size(), position); });
    if (step < 0) fail_writing(path_, format_message(" (after {} bytes)", {position}));
    bytes.remove_prefix(static_cast<size_t>(step));
    position += step;
  }
}

void remove_temporaries(const std::string& folder, const std::string& name) {
  static const std::regex temporary(R"(\.(.+)\.tmp-[0-9a-f]{16})");
  std::smatch parts;
  for (const std::string& found : names_in(folder))
    if (std::regex_match(found, parts, temporary) && (name.empty() || parts[1] == name)) ::unlink((folder + "/" + found).c_str());
}

AppendFile::AppendFile(const std::string& path)
    : path_(path), descriptor_(open_descriptor(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK)) {
  struct stat status = {};
  if (!descriptor_ || ::fstat(*descriptor_, &status) != 0) fail_writing(path);
  if (!S_ISREG(status.st_mode)) fail("cannot write {}: it exists and is not a regular file", {path});
  sync_folder(folder_of(path), open_folder(folder_of(path)));  // a new file could lose its name in a power cut
}

void AppendFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t step = retry([&] { return ::write(*descriptor_, bytes.data(), bytes.size()); });
    if (step < 0) fail_writing(path_);
    bytes.remove_prefix(static_cast<size_t>(step));
  }
}

void AppendFile::sync() {
  if (!sync_to_disk(descriptor_)) fail_writing(path_);
}

// ---- Reading
namespace {

// Opens a regular file. Null if it does not exist. Errors: all other failures.
Descriptor open_regular(const std::string& path) {
  Descriptor file = open_descriptor(path, O_RDONLY | O_NONBLOCK);  // opening a pipe must not wait for its writer
  struct stat status = {};
  if (!file && errno == ENOENT) return file;
  if (!file || ::fstat(*file, &status) != 0) fail("cannot read {}: {}", {path, system_reason()});
  if (S_ISDIR(status.st_mode)) fail("cannot read {}: {}", {path, std::generic_category().message(EISDIR)});
  if (!S_ISREG(status.st_mode)) fail("cannot read {}: not a regular file", {path});
  return file;
}

std::string text_of(const File& file, int64_t most) {
  const int64_t size = file.size();
  if (size > most) fail("cannot read {}: it has more than {} bytes", {file.path(), most});
  std::string text(static_cast<size_t>(size), '\0');
  text.resize(file.read(text.data(), text.size(), 0));
  return text;
}

}  // namespace

PathKind look_at(const std::string& path) {
  struct stat status = {};
  if (retry([&] { return ::stat(path.c_str(), &status); }) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return PathKind::nothing;
    fail("cannot read {}: {}", {path, system_reason()});
  }
  if (S_ISREG(status.st_mode)) return PathKind::file;
  return S_ISDIR(status.st_mode) ? PathKind::folder : PathKind::other;
}

File::File(const std::string& path) : path_(path), descriptor_(open_regular(path)) {
  if (!descriptor_) fail("cannot read {}: {}", {path, system_reason()});
}

std::optional<File> File::find(const std::string& path) {
  Descriptor file = open_regular(path);
  if (!file) return {};
  return File(path, std::move(file));
}

int64_t File::size() const {
  struct stat status = {};
  if (::fstat(*descriptor_, &status) != 0) fail("cannot read {}: {}", {path_, system_reason()});
  return status.st_size;
}

size_t File::read(void* target, size_t bytes, int64_t position) const {
  size_t done = 0;
  while (done < bytes) {
    char* const next = static_cast<char*>(target) + done;
    const int64_t from = position + static_cast<int64_t>(done);
    const ssize_t step = retry([&] { return ::pread(*descriptor_, next, bytes - done, from); });
    if (step < 0) fail("cannot read {} at byte {}: {}", {path_, from, system_reason()});
    if (step == 0) break;
    done += static_cast<size_t>(step);
  }
  return done;
}

std::string read_text(const std::string& path, int64_t most) { return text_of(File(path), most); }

std::optional<std::string> find_text(const std::string& path, int64_t most) {
  const std::optional<File> file = File::find(path);
  return file ? std::optional(text_of(*file, most)) : std::nullopt;
}

// ---- Folders
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  try {
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  } catch (const fs::filesystem_error& error) {
    fail("folder {}: cannot be listed: {}", {folder, error.code().message()});
  }
  std::sort(names.begin(), names.end());
  return names;
}

void make_folders(const std::string& path, unsigned rights) {
  const std::string above = folder_of(path);
  if (path.empty() || is_folder(path)) return;
  if (above != path) make_folders(above, rights);
  if (fs::path(path).filename().empty()) return;  // the path ends with a slash
  if (::mkdir(path.c_str(), rights) != 0 && errno != EEXIST) fail("{}: cannot be created: {}", {path, system_reason()});
  if (!is_folder(path)) fail("{}: cannot be created: a file already has this name", {path});
  sync_folder(above, open_folder(above));
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("cannot remove {}: {}", {path, system_reason()});
}

std::optional<FolderLock> FolderLock::take(const std::string& folder, bool waits) {
  Descriptor opened = open_folder(folder);
  const bool is_taken = retry([&] { return ::flock(*opened, LOCK_EX | (waits ? 0 : LOCK_NB)); }) == 0 || errno != EWOULDBLOCK;
  return is_taken ? std::optional(FolderLock(std::move(opened))) : std::nullopt;
}

bool FolderLock::holds(const std::string& folder) const {
  struct stat held = {}, found = {};
  if (::fstat(*descriptor_, &held) != 0) fail("cannot read {}: {}", {folder, system_reason()});
  if (look_at(folder) == PathKind::nothing || ::stat(folder.c_str(), &found) != 0) return false;
  return held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

}  // namespace ricci
