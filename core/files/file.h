// Files as whole values: read at once, mapped read-only, or replaced so that a reader never sees half a file.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ricci {

// The whole of a file, or of a pipe until it ends. Error: names the path and the system's reason.
std::string read_text(const std::string& path);

// Makes a folder and those above it that are not there, each synced into the one that holds it.
// Error: names the first that cannot be made and the reason.
void make_folders(const std::string& path);

// A regular file mapped read-only; its pages are read when they are touched. The mapping outlives a rename or removal
// of the file, but not its truncation by another program.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // error: names the path and the system's reason; not a regular file
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string path_;
  std::string_view bytes_;
};

// Where the callback of write_file_atomically puts its bytes, in order.
class FileWriter {
 public:
  void write(std::string_view bytes);  // error: names the path, the system's reason and how far it came
  int64_t written() const { return written_; }

 private:
  friend void write_file_atomically(const std::string& path, const std::function<void(FileWriter&)>& write);
  FileWriter(const std::string& path, int descriptor) : path_(path), descriptor_(descriptor) {}
  const std::string& path_;
  int descriptor_;
  int64_t written_ = 0;
};

// Replaces the file at `path`, or makes it, with what `write` produces: written beside it as .NAME.tmp-PID, synced,
// renamed, and the folder synced. On any error up to the renaming, one thrown by `write` included, the temporary file
// is removed and the old file is as it was. A symbolic link is followed; the access rights of an old file are kept.
// One thread at a time writes a path. While it is written, the temporary file is locked (flock).
// Errors: no such folder, something there that is not a regular file, a full disk; each names the path and the reason.
void write_file_atomically(const std::string& path, const std::function<void(FileWriter&)>& write);
void write_file_atomically(const std::string& path, std::string_view bytes);

// Removes the temporary files in a folder whose writers were killed: those that nobody has locked. Where the file system
// has no locks, or the folder cannot be read, nothing is removed.
void remove_abandoned_files(const std::string& folder);

}  // namespace ricci
