// The files of a text, and a stream through them. Files can be plain, compressed (.gz .zst .xz .bz2) or tar archives, and are recognized by
// their content; a text can also be built into the program. All programs read texts with TextStream.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/text/utf8.h"

namespace ricci {

// Finds a path as given, else under $RICCI_DATA. Error: neither exists; the message contains both paths and the key or option.
std::filesystem::path find_data(const std::string& path, const char* key = "data");
// Like find_data, but returns nullopt if neither exists.
std::optional<std::filesystem::path> look_for_data(const std::string& path);
// The file, or the visible files below the folder, sorted by path. Error: a folder cannot be listed.
std::vector<std::filesystem::path> files_at(const std::filesystem::path& path);

// A text that is part of the program. Its name can be given instead of a path.
struct BuiltInText {
  std::string name;
  std::string_view text;  // outlives every source that uses it
};

// A file as it was found, or a built-in text.
struct TextFile {
  std::filesystem::path path;  // or the name of a built-in text
  int64_t bytes = 0;           // on disk
  uint64_t stamp = 0;          // hash of the file's size, times and inode; for a built-in text, of its bytes
  std::optional<std::string_view> built_in = {};
  std::string name() const { return one_line(path.filename().string(), 255); }  // without control characters
};

// The files of a text. Cheap to copy. The constructor finds the files but does not read them.
class TextSource {
 public:
  // The paths of files and folders, in this order. A folder means all visible files below it, sorted by path. Errors: a path is not found
  // or not a regular file; a file or folder is empty.
  explicit TextSource(const std::vector<std::string>& paths, std::span<const BuiltInText> built_in = {});
  explicit TextSource(const std::string& path) : TextSource(std::vector{path}) {}

  // These files, read in this encoding.
  TextSource read_as(Encoding encoding) const;
  Encoding encoding() const { return encoding_; }

  const std::vector<TextFile>& files() const { return files_; }
  int64_t bytes_on_disk() const;
  std::string name() const;  // for messages: "input.txt", "a.txt and 2 more"

  // Hashes for cache names: place_hash() of the paths and the encoding, stamp_hash() of the sizes, times and inodes of the files.
  uint64_t place_hash() const;
  uint64_t stamp_hash() const;
  // A hash of the bytes of each file. Reads all files.
  uint64_t content_hash() const;
  // Error: the size or times of a file have changed since construction.
  void check_unchanged() const;

 private:
  static TextFile inspect(const std::filesystem::path& path);

  std::vector<TextFile> files_;
  Encoding encoding_ = Encoding::utf8;
};

// One pass over the files of a source and the members of their archives, in blocks of UTF-8. A file that is not an archive has one member.
// Errors: a file cannot be read, is damaged or cut short, or is empty after decompression; an archive member is compressed, or sparse (tar
// --sparse); TextDecoder's.
class TextStream {
 public:
  explicit TextStream(const TextSource& source, int64_t first_file = 0);
  ~TextStream();
  TextStream(const TextStream&) = delete;

  // Moves to the next visible, regular member in this file or a later one. Returns false at the end.
  bool next_member();
  int64_t file() const { return file_; }             // index of the open file; at the end, the number of files
  const std::string& name() const { return name_; }  // the member: "corpus.txt", or "corpus.tar: a/b.txt"
  // The next block of the member, about 256 KiB, valid until the next call; empty at its end.
  std::string_view next();
  int64_t bytes_of_files() const;  // approximate number of bytes read on disk, including the files before the first

 private:
  class File;
  bool is_archive(const TextFile& file);

  TextSource source_;
  int64_t file_ = 0, closed_ = 0;  // closed_: bytes on disk of the finished files
  std::unique_ptr<File> open_;
  TextDecoder decoder_;
  std::string name_, text_;  // text_: the last block that was returned
};

}  // namespace ricci
