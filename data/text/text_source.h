// The place of a text: one or several files, plain or compressed (.gz .zst .xz .bz2, recognised by content), or texts that the program
// carries. Several are joined byte to byte, nothing is put between them. Reading order: text_source.h; file_stream.h: one file, its members
// where it is a tar archive; text_stream.h: all of a text, or a part of it, in blocks or pieces; utf8.h: encodings.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace ricci {

// The path as given, else under $RICCI_DATA. Error naming both places where neither exists.
std::filesystem::path find_data(const std::string& path);

// f(), with "data: " in front of its error.
template <class F> auto about_data(const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    fail("data: {}", {error.what()});
  }
}

// A text that the program carries: its name may stand where a path does.
struct BuiltInText {
  std::string name;
  std::string_view text;  // outlives every source of it
};

struct TextFile {
  std::filesystem::path path;  // or the name of a built-in text
  int64_t bytes;               // on disk
  uint64_t stamp;              // hash of what the system tells of it; of its bytes where it is built in
  bool settled = true;
  std::optional<std::string_view> built_in = {};
  std::string name() const { return path.filename().string(); }
};

// The files that make a text, or a part of one: a small value. On construction files are looked up, and none of them is read.
class TextSource {
 public:
  // A file, a folder (every file below it, hidden ones left out, sorted by path; a folder that several links lead to
  // counts once), or several of both separated by commas, joined in the order given. A name that exists with its comma is
  // one name.
  // Errors: nothing found, not a regular file, an empty file or folder.
  explicit TextSource(const std::string& paths);
  static TextSource of_paths(const std::vector<std::string>& paths, std::span<const BuiltInText> built_in = {});

  // The characters [first, end) of this text, counted after joining and decompressing, under a label such as "train". A character
  // starts with a byte that does not continue one, so any text can be cut.
  TextSource part(const std::string& label, int64_t first, int64_t end = INT64_MAX) const;

  // The same under another label.
  TextSource as(const std::string& label) const;

  const std::vector<TextFile>& files() const { return files_; }
  std::vector<TextSource> each_file() const;  // as a text of its own, whole
  int64_t bytes_on_disk() const;

  // For messages: "input.txt", "a.txt and 2 more", "input.txt (train)".
  std::string name() const;

  // Identity for caches: the same paths; and the same files as the system tells, unread: their sizes, times and inodes.
  uint64_t place_hash() const;
  uint64_t stamp_hash() const;
  // True where any change of the files behind their look-up has changed their stamps: they had not just been written.
  bool is_settled() const;
  // Identity of the paths and bytes of the files. Reads all of them.
  uint64_t content_hash() const;
  // Error where a file no longer has the size and time that it had on construction.
  void check_unchanged() const;

 private:
  friend class TextStream;
  TextSource() = default;
  static TextFile inspect(const std::filesystem::path& path);
  void add(const std::string& path);

  std::vector<TextFile> files_;
  std::string label_;
  int64_t first_ = 0, end_ = INT64_MAX;  // characters
};

}  // namespace ricci
