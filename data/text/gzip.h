// The text of a .gz file, block by block. Every member's length and CRC-32 are compared, which libarchive leaves out.
// Source: RFC 1952; the decompression is zlib's.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/files/file.h"

namespace ricci {

// Whether a file starts with the mark of gzip.
bool is_gzip(const OpenFile& file);

class GzipStream {
 public:
  // The file must outlive the stream.
  explicit GzipStream(const OpenFile& file);
  ~GzipStream();
  // The next block, 256 KiB or less, valid until the next call; empty at the end of the last member.
  // Errors: damaged, cut short, bytes after the last member.
  std::string_view next();
  int64_t bytes_of_file() const { return read_; }  // read so far

 private:
  struct Decoder;
  bool refill();
  [[noreturn]] void reject(const char* fault) const;

  const OpenFile& file_;
  std::unique_ptr<Decoder> decoder_;
  std::string packed_, text_;
  int64_t read_ = 0;    // bytes of the file
  bool inside_ = true;  // a member
};

}  // namespace ricci
