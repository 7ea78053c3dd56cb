// A text as a stream of blocks, never loaded whole: one or several files, plain or compressed (.gz .zst .xz .bz2,
// recognised by content), or texts that the program carries. Several are joined byte to byte, nothing is put between them.
// A file that was cut is an error. So is damage where the format has checksums: .gz, .xz, .bz2, and .zst as the zstd program
// writes it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/file.h"
#include "data/text/gzip.h"

struct archive;

namespace ricci {

// The path as given, else under $RICCI_DATA. Error naming both places where neither exists.
std::filesystem::path find_data(const std::string& path);

// A text that the program carries: its name may stand where a path does.
struct BuiltInText {
  std::string name;
  std::string_view text;  // outlives every source of it
};

// What is read: a small value. On construction files are looked up and read once, for the hash of their bytes.
class TextSource {
 public:
  // A file, a folder (every file below it, hidden ones left out, sorted by path; a folder that several links lead to
  // counts once), or several of both separated by commas, joined in the order given. A name that exists with its comma is
  // one name.
  // Errors: nothing found, not a regular file, an empty file or folder.
  explicit TextSource(const std::string& paths);
  static TextSource of_paths(const std::vector<std::string>& paths, std::span<const BuiltInText> built_in = {});

  // The bytes [first, end) of this text, counted after joining and decompressing, under a label such as "train".
  TextSource part(const std::string& label, int64_t first, int64_t end) const;

  // Each file as a text of its own, whole; and its size on disk.
  std::vector<TextSource> each_file() const;
  int64_t bytes_on_disk() const;

  // For messages: "input.txt", "a.txt and 2 more", "input.txt (train)".
  std::string name() const;
  const std::string& label() const { return label_; }
  int64_t first_byte() const { return first_; }

  // Identity for caches: the same paths and label; and whether the bytes of the files and the range are the same, too.
  uint64_t place_hash() const;
  uint64_t content_hash() const;
  // Error where a file no longer has the bytes it had on construction. Reads all of them.
  void check_unchanged() const;

 private:
  friend class TextStream;
  struct File {
    std::filesystem::path path;  // or the name of a built-in text
    int64_t bytes;               // on disk
    uint64_t hash;               // of these bytes
    std::optional<std::string_view> built_in = {};
  };
  TextSource() = default;
  static File inspect(const std::filesystem::path& path);
  void add(const std::string& path);

  std::vector<File> files_;
  std::string label_;
  int64_t first_ = 0;
  int64_t end_ = INT64_MAX;
};

// One pass over a source.
class TextStream {
 public:
  explicit TextStream(TextSource source) : source_(std::move(source)) {}
  // The next block, 256 KiB or less, valid until the next call; empty at the end of the text.
  // Errors: unreadable, damaged or cut files, a compressed file that holds nothing, a text that ends inside the part.
  std::string_view next();
  // Where the block last returned starts in the joined text, in bytes.
  int64_t offset() const { return offset_; }
  // Of the files, bytes on disk that were read; nearly, and for telling how far a reader is.
  int64_t bytes_of_files() const;

 private:
  struct CloseArchive {
    void operator()(archive* handle) const;
  };
  std::string_view read_block();
  std::string_view read_file();
  void open_file();
  void open_archive();
  void close_file();
  [[noreturn]] void fail_reading() const;

  TextSource source_;
  size_t file_ = 0;                        // the file that is open, or the next to open
  bool opened_ = false, yielded_ = false;  // the file is open; it gave bytes
  // What is open: a file, and what unpacks it; or what is left of a built-in text.
  std::optional<OpenFile> open_;
  std::unique_ptr<GzipStream> gzip_;
  std::unique_ptr<archive, CloseArchive> handle_;
  std::string_view built_in_;
  int64_t read_ = 0;    // bytes of the joined text that were read
  int64_t closed_ = 0;  // bytes on disk of the files that are done
  int64_t offset_ = 0;
};

// Calls use(piece, offset) for the whole text in order, where no piece but the last ends inside a unit of the text:
// complete_prefix(text) tells how many bytes are certain to be complete. Memory: one block and one unfinished unit. Where a unit is
// long, complete_prefix is asked again only when twice as many bytes are known, so that the time grows with the text alone.
void for_each_piece(const TextSource& source, const std::function<size_t(std::string_view)>& complete_prefix,
    const std::function<void(std::string_view piece, int64_t offset)>& use);

}  // namespace ricci
