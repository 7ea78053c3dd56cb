// Files: read at once, read at any position, appended to, or replaced as a whole. Programs replace every file that they need again with
// write_atomically, because otherwise a kill or a full disk would leave half a file instead of the old one.
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

// Follows links. Error: the path cannot be examined, for example because a folder forbids it. The file is then not missing.
enum class PathKind { nothing, file, folder, other };
PathKind look_at(const std::string& path);
inline bool is_there(const std::string& path) { return look_at(path) != PathKind::nothing; }
inline bool is_file(const std::string& path) { return look_at(path) == PathKind::file; }
inline bool is_folder(const std::string& path) { return look_at(path) == PathKind::folder; }

// An open file or folder; closed when the last copy ends.
using Descriptor = std::shared_ptr<const int>;

// ---- Reading
// The contents of a regular file. Errors: the system's reason, not a regular file, more than `most` bytes.
std::string read_text(const std::string& path, int64_t most = kMaxText);
std::optional<std::string> find_text(const std::string& path, int64_t most = kMaxText);  // nothing if it does not exist

// A regular file, open for reading at any position, also after it was renamed or removed.
class File {
 public:
  explicit File(const std::string& path);                    // errors as for read_text
  static std::optional<File> find(const std::string& path);  // nothing if it does not exist

  const std::string& path() const { return path_; }
  int64_t size() const;  // now
  // The number of bytes read; fewer than `bytes` only at the end of the file. Error: the position and the system's reason.
  size_t read(void* target, size_t bytes, int64_t position) const;

 private:
  File(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  std::string path_;
  Descriptor descriptor_;
};

// ---- Writing
// A write failed because the disk is full, or the user's quota.
class DiskFull : public Error {
 public:
  using Error::Error;
};

// The callback of write_atomically writes its bytes here, in order.
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

// Replaces the file at `path`, or makes it (how: core/files/file.cpp). After an error, including one thrown by `write`, the old file is
// unchanged. It first removes the temporary files that killed writers of this file left, so two programs that write the same file need a
// lock. A link is replaced by the file. Errors: the folder does not exist, the path is not a regular file, the disk is full.
void write_atomically(const std::string& path, const std::function<void(FileWriter&)>& write);
void write_atomically(const std::string& path, std::string_view bytes);
// Removes the temporary files of killed writers, of all files or of the one named; the caller has the folder's lock.
void remove_temporaries(const std::string& folder, const std::string& name = "");

// A file that grows at its end while others read it, such as the records of a run.
class AppendFile {
 public:
  explicit AppendFile(const std::string& path);  // makes the file if it does not exist
  void append(std::string_view bytes);           // then the system has the bytes, also if this program is killed
  void sync();                                   // then the disk has them

 private:
  std::string path_;
  Descriptor descriptor_;
};

// ---- Folders
std::vector<std::string> names_in(const std::string& folder);  // sorted; error: the folder cannot be listed
// Makes a folder and the missing ones above it, and syncs each. Error: the first that cannot be made, and the reason.
void make_folders(const std::string& path, unsigned rights = 0777);
void remove_file(const std::string& path);  // does nothing if it does not exist

// Only one holder at a time has the lock of a folder. The system frees it when the program ends, even by a kill. On file systems without
// locks every caller gets it. Error: the folder does not exist.
class FolderLock {
 public:
  // Waits for the lock if `waits` is set; otherwise nothing if another holder has it.
  static std::optional<FolderLock> take(const std::string& folder, bool waits = false);
  // False if the path now leads to another folder, or to none, because a job must not write into a folder that replaced its own.
  bool holds(const std::string& folder) const;

 private:
  explicit FolderLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

}  // namespace ricci
