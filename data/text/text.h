// The place of a text: one or several files, plain or compressed (.gz .zst .xz .bz2, recognised by content), or texts that the program
// carries. Several are joined character to character, nothing is put between them. TextStream and TextPieces read it, all or a part, and
// never load it whole. file_stream.h reads one file, or its members where it is a tar archive; utf8.h: encodings.
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

#include "core/error.h"
#include "data/text/file_stream.h"

namespace ricci {

// The path as given, else under $RICCI_DATA. Error where neither exists, with both places and the key or option that asked.
std::filesystem::path find_data(const std::string& path, const char* key = "data");
// Like find_data, but returns nothing where neither exists. Both fail if one of the places cannot be looked at.
std::optional<std::filesystem::path> look_for_data(const std::string& path);

// A text that the program carries: its name may be where a path does.
struct BuiltInText {
  std::string name;
  std::string_view text;  // outlives every source of it
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

  // The same under another label, or in another encoding than UTF-8.
  TextSource as(const std::string& label) const;
  TextSource read_as(Encoding encoding) const;
  Encoding encoding() const { return encoding_; }

  const std::vector<TextFile>& files() const { return files_; }
  std::vector<TextSource> each_file() const;  // as a text of its own, whole
  int64_t bytes_on_disk() const;

  // For messages: "input.txt", "a.txt and 2 more", "input.txt (train)".
  std::string name() const;

  // Identity for caches: the same paths and encoding; and the same files by the system's record, unread: their sizes, times and inodes.
  uint64_t place_hash() const;
  uint64_t stamp_hash() const;
  // True if the files had not just been written when they were looked up: any later change then changes their stamps.
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
  Encoding encoding_ = Encoding::utf8;
  int64_t first_ = 0, end_ = INT64_MAX;  // characters
};

// ---- A text as a stream of blocks or pieces, never loaded whole.
// One pass over a source: its files, joined. An archive gives its members.
class TextStream {
 public:
  explicit TextStream(TextSource source) : source_(std::move(source)), entered_(source_.first_ == 0) {}
  // The next block, about 256 KiB, valid until the next call; empty at the end of the text.
  // Errors: FileStream's and MemberStream's, a text that ends inside the part.
  std::string_view next();
  // After the end of the part: next() goes on with the rest of the text.
  void read_rest() { source_.end_ = INT64_MAX; }
  // The place of the block last returned in the joined text, in bytes.
  int64_t offset() const { return offset_; }
  // Bytes on disk that were read of all files; nearly.
  int64_t bytes_of_files() const { return closed_ + (open_ ? open_->bytes_of_file() : 0); }

 private:
  std::string_view read_block();
  size_t bytes_up_to(int64_t character);

  TextSource source_;
  size_t file_ = 0;  // the file that is open, or the next to open
  std::unique_ptr<MemberStream> open_;
  bool in_member_ = false;
  bool entered_;            // the part has begun
  std::string_view block_;  // read, and not returned yet
  int64_t passed_ = 0;      // bytes of the joined text before it
  int64_t characters_ = 0;  // that begin there; counted while the part has a border to come
  int64_t closed_ = 0;      // bytes on disk of the files that are done
  int64_t offset_ = 0;
};

// One pass over a source in pieces. Only the last may end inside a unit of the text: complete_prefix(text) is the number of bytes that
// are certain to be complete. A unit that is longer than a piece is divided between two characters, so that memory is bounded.
class TextPieces {
 public:
  static constexpr size_t kLongest = 256 << 10;  // bytes of a piece, at most
  using CompletePrefix = std::function<size_t(std::string_view)>;
  TextPieces(const TextSource& source, CompletePrefix complete_prefix) : stream_(source), complete_prefix_(std::move(complete_prefix)) {}

  struct Piece {
    std::string_view text;  // valid until the next call
    int64_t offset;         // its first byte's place in the joined text
    bool ends;              // it is the last piece of the part, which is empty only where the part is
  };
  // Nothing after the last piece. Errors: TextStream's.
  std::optional<Piece> next();
  // After the last piece of the part: next() goes on with the rest of the text.
  void read_rest();
  int64_t bytes_of_files() const { return stream_.bytes_of_files(); }

 private:
  TextStream stream_;
  CompletePrefix complete_prefix_;
  std::string held_;  // the last piece and what is after it
  size_t used_ = 0;   // bytes of the last piece
  int64_t offset_ = 0;
  bool ended_ = false;
};

// Texts that are read from their start to their end, for example by the training of a vocabulary: a source as one text, or documents
// (data/shards/document_reader.h). They come in pieces, and no piece reaches into the next text.
class Texts {
 public:
  using Use = std::function<void(std::string_view piece, int64_t offset, const std::string& place)>;  // place: the text's name
  using Read = std::function<void(const TextPieces::CompletePrefix& complete_prefix, const Use& use)>;
  Texts(const TextSource& source);
  explicit Texts(Read read) : read_(std::move(read)) {}
  // Calls use for all pieces but empty ones.
  void for_each_piece(const TextPieces::CompletePrefix& complete_prefix, const Use& use) const { read_(complete_prefix, use); }

 private:
  Read read_;
};

// The length of a text in units that do not depend on a tokenizer.
struct TextSize {
  int64_t bytes = 0;
  // Words between blanks, tabs and line ends, and every line end as one more, as the token counts of WikiText are published; unless no
  // token stands for line ends, because the perplexity per word would then share the loss among words that were not predicted.
  int64_t words = 0;
};

// Reads the text as a stream. Errors: TextStream's.
TextSize size_of_text(const TextSource& text, bool has_line_ends = true);

}  // namespace ricci
