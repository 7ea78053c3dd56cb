// A text: the files that hold it, and a stream through them. Files can be plain or compressed (.gz .zst .xz .bz2) or tar archives, all of
// them recognised by their content, or texts that the program carries. Every reader of texts is built on TextStream, because a byte order
// mark or line ends that only some readers knew would give the same text other tokens. utf8.h: encodings.
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

// f(), with the subject before its error: "data: cannot read a.txt".
template <class F> auto about(const std::string& subject, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    fail("{}: {}", {subject, error.what()});
  }
}

// The path as given, else under $RICCI_DATA. Error where neither exists, with both places and the key or option that asked.
std::filesystem::path find_data(const std::string& path, const char* key = "data");
// Like find_data, but returns nothing where neither exists. Both fail if one of the places cannot be looked at.
std::optional<std::filesystem::path> look_for_data(const std::string& path);

// A text that the program carries: its name may be where a path does.
struct BuiltInText {
  std::string name;
  std::string_view text;  // outlives every source of it
};

// A file as it was found, or a text that the program carries.
struct TextFile {
  std::filesystem::path path;  // or the name of a built-in text
  int64_t bytes = 0;           // on disk
  uint64_t stamp = 0;          // hash of the system's record of it; of its bytes where it is built in
  bool settled = true;         // it had not just been written, because the stamp shows every later change only then
  std::optional<std::string_view> built_in = {};
  std::string name() const { return one_line(path.filename().string(), 255); }  // without control characters
};

// The files that make a text: a small value. On construction files are looked up, and none of them is read.
class TextSource {
 public:
  // A file, a folder (every file below it, hidden ones left out, sorted by path; a folder that several links lead to
  // counts once), or several of both separated by commas, joined in the order given. A name that exists with its comma is
  // one name.
  // Errors: nothing found, not a regular file, an empty file or folder.
  explicit TextSource(const std::string& paths);
  static TextSource of_paths(const std::vector<std::string>& paths, std::span<const BuiltInText> built_in = {});

  // The same in another encoding than UTF-8.
  TextSource read_as(Encoding encoding) const;
  Encoding encoding() const { return encoding_; }

  const std::vector<TextFile>& files() const { return files_; }
  int64_t bytes_on_disk() const;
  std::string name() const;  // for messages: "input.txt", "a.txt and 2 more"

  // Identities for caches. The first is of the paths and the encoding.
  uint64_t place_hash() const;
  // The same with the system's records of the files: sizes, times and inodes. A file that had just been written is read, because another
  // change within the same tick of the clock would leave its times as they are.
  uint64_t stamp_hash() const;
  // The path and the bytes of each file. Reads all of them.
  std::vector<uint64_t> content_hashes() const;
  // Error where a file no longer has the size and time that it had on construction.
  void check_unchanged() const;

 private:
  TextSource() = default;
  static TextFile inspect(const std::filesystem::path& path);
  void add(const std::string& path);

  std::vector<TextFile> files_;
  Encoding encoding_ = Encoding::utf8;
};

// One pass over the files of a source and the members of their archives, as UTF-8 and never loaded whole. A file that is no archive is its
// only member. Errors: a file that cannot be read, that is damaged or cut, or holds nothing after decompression; a member of an archive
// that is compressed, or packed without its zeros (tar --sparse); TextDecoder's.
class TextStream {
 public:
  explicit TextStream(const TextSource& source, int64_t first_file = 0);
  ~TextStream();
  TextStream(const TextStream&) = delete;

  // Continues with the next member that is a regular file and not hidden, of this file or of a later one; false at the end.
  bool next_member();
  int64_t file() const { return file_; }             // the number of the file that is open; at the end the number of files
  const std::string& name() const { return name_; }  // the member: "corpus.txt", or "corpus.tar: a/b.txt"
  // The next block of the member, about 256 KiB, valid until the next call; empty at its end.
  std::string_view next();
  int64_t bytes_of_files() const;  // read so far, on disk; nearly. With the files before the first

 private:
  class File;
  bool is_archive(const TextFile& file);

  TextSource source_;
  int64_t file_ = 0, closed_ = 0;  // closed_: bytes on disk of the files that are done
  std::unique_ptr<File> open_;
  TextDecoder decoder_;
  std::string name_, text_;  // text_: the last block
};

// The length of a text in units that do not depend on a tokenizer.
struct TextSize {
  int64_t bytes = 0;
  // Words between blanks, tabs and line ends, and every line end as one more, as the token counts of WikiText are published; unless no
  // token stands for line ends, because the perplexity per word would then share the loss among words that were not predicted.
  int64_t words = 0;
};

// All files are one text, which is read as a stream; its bytes before from_byte do not count.
TextSize size_of_text(const TextSource& text, int64_t from_byte = 0, bool has_line_ends = true);

}  // namespace ricci
