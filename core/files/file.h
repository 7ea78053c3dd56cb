// Files that are read in one call, read at any position, appended to, or replaced. Programs use write_atomically to replace every file that
// they need again. After a kill or on a full disk, the old file remains, not half of the new one.
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

inline constexpr int64_t kMaxText = int64_t{1} << 30;  // largest size in bytes of a file that is read in one call

// Follows links. Error: the path cannot be examined (a folder denies access); this does not mean that the file is missing.
enum class PathKind { nothing, file, folder, other };
PathKind look_at(const std::string& path);
inline bool is_there(const std::string& path) { return look_at(path) != PathKind::nothing; }
inline bool is_file(const std::string& path) { return look_at(path) == PathKind::file; }
inline bool is_folder(const std::string& path) { return look_at(path) == PathKind::folder; }

// A file descriptor, closed when its last copy is destroyed.
using Descriptor = std::shared_ptr<const int>;

// ---- Reading
// The contents of a regular file. Errors: the file cannot be read (with the reason), is not regular, or has more than `most` bytes.
std::string read_text(const std::string& path, int64_t most = kMaxText);
std::optional<std::string> find_text(const std::string& path, int64_t most = kMaxText);  // nothing if it does not exist

// A regular file, open for reading at any position, even after it was renamed or removed.
class File {
 public:
  explicit File(const std::string& path);                    // errors as for read_text
  static std::optional<File> find(const std::string& path);  // nothing if it does not exist

  const std::string& path() const { return path_; }
  int64_t size() const;  // the current size
  // Returns the number of bytes read, fewer than `bytes` only at the end of the file. The error gives the position and the system's reason.
  size_t read(void* target, size_t bytes, int64_t position) const;

 private:
  File(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  std::string path_;
  Descriptor descriptor_;
};

// ---- Writing
// Thrown if a write fails on a full disk or a full user quota.
class DiskFull : public Error {
 public:
  using Error::Error;
};

// The callback of write_atomically gets a FileWriter to write its bytes, in order.
class FileWriter {
 public:
  void write(std::string_view bytes);
  void overwrite(int64_t position, std::string_view bytes);  // replaces bytes that were written before
  int64_t written() const { return written_; }

 private:
  friend void write_atomically(const std::string& path, const std::function<void(FileWriter&)>& write);
  FileWriter(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  std::string path_;
  Descriptor descriptor_;
  int64_t written_ = 0;
};

// Replaces or creates the file at `path` (how: core/files/file.cpp). After an error, including one thrown by `write`, the old file is
// unchanged. It first removes temporary files that remain from killed writers of this file, so two writers need a lock. A link is replaced
// by the file. Errors: the folder does not exist, the path is not a regular file, the disk is full.
void write_atomically(const std::string& path, const std::function<void(FileWriter&)>& write);
void write_atomically(const std::string& path, std::string_view bytes);
// Removes temporary files of killed writers: all of them, or only those for the file `name`. The caller must hold the folder's lock.
void remove_temporaries(const std::string& folder, const std::string& name = "");

// A file that grows at its end while others read it, such as the records of a run.
class AppendFile {
 public:
  explicit AppendFile(const std::string& path);  // creates the file if it does not exist
  void append(std::string_view bytes);           // afterwards the system has the bytes, even if this program is killed
  void sync();                                   // afterwards the disk has the bytes

 private:
  std::string path_;
  Descriptor descriptor_;
};

// ---- Folders
std::vector<std::string> names_in(const std::string& folder);  // sorted; error: the folder cannot be listed
// Creates a folder and its missing parents, and syncs each. Error: a folder cannot be created (with the reason).
void make_folders(const std::string& path, unsigned rights = 0777);
void remove_file(const std::string& path);  // does nothing if it does not exist

// A folder's lock has one holder at a time. The system releases the lock when the program ends, even if it is killed. On file systems
// without locks, every caller gets the lock. Error: the folder does not exist.
class FolderLock {
 public:
  // If the lock is held, waits for it if `waits` is set, else returns nothing.
  static std::optional<FolderLock> take(const std::string& folder, bool waits = false);
  // False if the path now leads to a different folder or to none. A job must not write into a folder that replaced its own.
  bool holds(const std::string& folder) const;

 private:
  explicit FolderLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

}  // namespace ricci
