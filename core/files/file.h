// Files as whole values: read at once, read at any position, or replaced so that a reader never sees half a file.
// Only regular files are read: a pipe or a device in the place of a file is an error, and is never waited for.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/files/folder.h"

namespace ricci {

inline constexpr int64_t kMaxText = int64_t{1} << 30;  // bytes of a file that is read at once

// The whole of a regular file. Errors name the path: the system's reason, not a regular file, more than `most` bytes.
std::string read_text(const FilePlace& place, int64_t most = kMaxText);

// A regular file open for reading at any position, also after it was renamed or removed.
class OpenFile {
 public:
  explicit OpenFile(const FilePlace& place);  // error: names the path and the system's reason; not a regular file
  // Nothing where there is no file.
  static std::optional<OpenFile> find(const FilePlace& place);

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_.get(); }
  int64_t size() const;     // now. Error: the system's
  int64_t changed() const;  // when it was last written to: nanoseconds since 1970. Error: the system's
  // Fewer than `bytes` bytes only at the end of the file. Error: names the path, the position and the reason.
  size_t read(void* target, size_t bytes, int64_t position) const;

 private:
  friend class FileWriter;
  OpenFile(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  std::string path_;
  Descriptor descriptor_;
};

// A write failed because the disk is full, or the quota of the user.
class DiskFull : public Error {
 public:
  using Error::Error;
};

// The callback of write_file_atomically puts its bytes here, in order.
class FileWriter {
 public:
  void write(std::string_view bytes);                        // error: names the path, the system's reason and how far it came
  void overwrite(int64_t position, std::string_view bytes);  // bytes that were written before; error: the system's
  int64_t written() const { return written_; }

 private:
  friend OpenFile write_file_atomically(const FilePlace& place, const std::function<void(FileWriter&)>& write);
  FileWriter(std::string path, Descriptor descriptor) : file_(std::move(path), std::move(descriptor)) {}
  OpenFile file_;
  int64_t written_ = 0;
};

// Replaces the file at `place`, or makes it, with what `write` produces: written beside it as .NAME.tmp-RANDOM, synced,
// renamed, and the folder synced. Returns the new file, open, even if its name was replaced since. On any error up to the renaming, one
// thrown by `write` included, the temporary file is removed and the old file is as it was. The access rights of an old file are kept.
// While it is written, the temporary file is locked (flock); older ones of the same name whose writers were killed are removed. A path
// leads through links to the file that they point to, and this file is replaced; in a folder that is held open the link is replaced,
// because what it points to may be in a store for several runs. Errors: no such folder, something there that is not a regular file, a full
// disk; each names the path and the reason.
OpenFile write_file_atomically(const FilePlace& place, const std::function<void(FileWriter&)>& write);
OpenFile write_file_atomically(const FilePlace& place, std::string_view bytes);

// A file that grows at its end while others read it, such as the records of a run.
class AppendFile {
 public:
  // Makes the file if it does not exist. Errors: names the path and the reason; it is not a regular file.
  explicit AppendFile(const FilePlace& place);

  // Handed to the system when this returns. Error: names the path and the reason, such as a full disk.
  void append(std::string_view bytes);
  // Waits until everything appended is on the disk. Error: names the path and the reason.
  void sync();

 private:
  [[noreturn]] void fail_with_reason() const { fail("cannot write {}: {}", {path_, system_reason()}); }

  std::string path_;
  Descriptor descriptor_;
};

// 16 random hexadecimal digits: a name that no other process chooses, whatever its number and its clock are.
std::string random_digits();

// Removes a file; a missing one is no error. Error: the system's.
void remove_file(const FilePlace& place);

// Removes the temporary files in a folder whose writers were killed: the ones that are not locked. Where the file system has no locks
// nothing is removed. `name`: only the ones of the file of this name.
void remove_abandoned_files(const Folder& folder, const std::string& name = "");

}  // namespace ricci
