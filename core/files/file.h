// Files by their paths: read at once, read at any position, or replaced as a whole. A file that programs need again after a crash is
// written by write_atomically, because otherwise a kill or a full disk would leave half a file in place of the old one. All calls of the
// system that open, sync or rename files are in file.cpp.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace ricci {

inline constexpr int64_t kMaxText = int64_t{1} << 30;  // bytes of a file that is read at once

// The target of the path; links are followed. Error: it cannot be looked at, which does not mean that it is missing.
enum class PathKind { nothing, file, folder, other };
PathKind look_at(const std::string& path);
inline bool is_there(const std::string& path) { return look_at(path) != PathKind::nothing; }
inline bool is_file(const std::string& path) { return look_at(path) == PathKind::file; }
inline bool is_folder(const std::string& path) { return look_at(path) == PathKind::folder; }

// A file or folder that the system has opened; closed when the last copy ends.
using Descriptor = std::shared_ptr<const int>;

// ---- Reading
// The whole of a regular file. Errors name the path: the system's reason, not a regular file, more than `most` bytes.
std::string read_text(const std::string& path, int64_t most = kMaxText);
std::optional<std::string> find_text(const std::string& path, int64_t most = kMaxText);  // nothing if there is no file

// A regular file open for reading at any position, also after it was renamed or removed.
class File {
 public:
  explicit File(const std::string& path);                    // error: names the path and the system's reason; not a regular file
  static std::optional<File> find(const std::string& path);  // nothing if there is no file

  const std::string& path() const { return path_; }
  int64_t size() const;  // now
  // Fewer than `bytes` bytes only at the end of the file. Error: names the path, the position and the reason.
  size_t read(void* target, size_t bytes, int64_t position) const;

 private:
  File(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  std::string path_;
  Descriptor descriptor_;
};

// ---- Writing
// A write failed because the disk is full, or the quota of the user.
class DiskFull : public Error {
 public:
  using Error::Error;
};

// The callback of write_atomically puts its bytes here, in order. Errors name the path and the system's reason.
class FileWriter {
 public:
  void write(std::string_view bytes);
  void overwrite(int64_t position, std::string_view bytes);  // bytes that were written before
  int64_t written() const { return written_; }

 private:
  friend void write_atomically(const std::string& path, const std::function<void(FileWriter&)>& write);
  FileWriter(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  std::string path_;
  Descriptor descriptor_;
  int64_t written_ = 0;
};

// Replaces the file at `path`, or makes it: the bytes go into .NAME.tmp-RANDOM in the same folder, which is synced and renamed, and then
// the folder is synced. On an error, one thrown by `write` included, the temporary file is removed and the old file is as it was. Temporary
// files of the same name are removed first, because killed writers leave them: two programs that write one file at the same time need a
// lock. A link is replaced by the file. Errors: no such folder, something there that is not a regular file, a full disk.
void write_atomically(const std::string& path, const std::function<void(FileWriter&)>& write);
void write_atomically(const std::string& path, std::string_view bytes);
// Removes the temporary files of killed writers; the caller has the folder's lock.
void remove_temporaries(const std::string& folder);

// A file that grows at its end while others read it, such as the records of a run.
class AppendFile {
 public:
  explicit AppendFile(const std::string& path);  // makes the file if it does not exist

  void append(std::string_view bytes);  // the system has the bytes when this returns
  void sync();                          // waits until everything appended is on the disk

 private:
  std::string path_;
  Descriptor descriptor_;
};

// ---- Folders
std::vector<std::string> names_in(const std::string& folder);  // sorted; error: the folder cannot be listed
// Makes a folder and the missing ones above it, each synced into the one that holds it. Returns the paths of the folders that were made,
// from the top. Error: names the first that cannot be made and the reason.
std::vector<std::string> make_folders(const std::string& path, unsigned rights = 0777);
void remove_file(const std::string& path);  // a missing one is no error

// Only one holder at a time has the lock of a folder. The system frees it when the program ends, however it ends. Some file systems have no
// locks: there everybody gets it. Error: no such folder.
class FolderLock {
 public:
  // Nothing while another holder has it, unless the caller waits.
  static std::optional<FolderLock> take(const std::string& folder, bool waits = false);
  // False if by now the path leads to another folder, or to none. A job whose folder was replaced must not write into the new one.
  bool holds(const std::string& folder) const;

 private:
  explicit FolderLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

}  // namespace ricci
