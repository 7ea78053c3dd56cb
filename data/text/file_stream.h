// One file of a text as a stream: its bytes, unpacked (.gz .zst .xz .bz2), and the texts inside of it, which are the members of a tar
// archive; any other file is its only member. Compression and archives are known by their content. Every reader of texts stands on
// MemberStream, because a mark or line ends that only some of them knew would give the same text other tokens.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/files/file.h"
#include "data/text/utf8.h"

struct archive;

namespace ricci {

// f(), with "data: " before its error.
template <class F> auto about_data(const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    fail("data: {}", {error.what()});
  }
}

// A file as it was found, or a text that the program carries.
struct TextFile {
  std::filesystem::path path;  // or the name of a built-in text
  int64_t bytes;               // on disk
  uint64_t stamp;              // hash of the system's record of it; of its bytes where it is built in
  bool settled = true;
  std::optional<std::string_view> built_in = {};
  std::string name() const { return one_line(path.filename().string(), 255); }  // without control characters
};

class GzipStream;

struct FreeArchive {
  void operator()(archive* handle) const;
};
using Archive = std::unique_ptr<archive, FreeArchive>;

// The bytes of a file. A file that was cut is an error. So is damage where the format has checksums: .gz, .xz, .bz2, and .zst as the
// zstd program writes it.
class FileStream {
 public:
  // Errors: unreadable, damaged at its start, or compressed in another way than those above.
  explicit FileStream(const TextFile& file);
  ~FileStream();
  // The next block, about 256 KiB, valid until the next call; empty at the end.
  // Errors: unreadable, damaged or cut; a compressed file that holds nothing, or that something other than zeros follows.
  std::string_view next();
  int64_t bytes_of_file() const;  // approximate number of bytes on disk that were read, for progress lines

 private:
  std::optional<std::string_view> built_in_;  // what is left of it
  std::optional<OpenFile> file_;
  std::unique_ptr<GzipStream> gzip_;
  Archive handle_;
  bool yielded_ = false;
};

class MemberStream {
 public:
  MemberStream(const TextFile& file, Encoding encoding);  // errors: its start cannot be read
  ~MemberStream();
  MemberStream(const MemberStream&) = delete;

  // Goes to the next member that is a regular file, neither hidden nor in a hidden folder; false at the end. Archives that were joined are
  // one. Errors: a damaged or cut archive, a member that is packed without its zeros (tar --sparse).
  bool next_member();
  // "corpus.txt", or "corpus.tar: a/b.txt"
  const std::string& name() const { return name_; }
  // The next block of the member's text, as UTF-8, valid until the next call; empty at its end. Errors: a member of an archive that is
  // compressed, and TextDecoder's.
  std::string_view next();
  int64_t bytes_of_file() const { return stream_.bytes_of_file(); }

 private:
  struct Tar;
  std::string_view next_of_file();
  std::string_view next_bytes();
  std::string file_name_, name_;
  FileStream stream_;
  TextDecoder decoder_;
  std::string text_;  // the last block
  int64_t bytes_on_disk_;
  std::string first_;  // what was read of the file to recognise it
  bool first_given_ = false, started_ = false, in_member_ = false;
  std::unique_ptr<Tar> tar_;
};

}  // namespace ricci
