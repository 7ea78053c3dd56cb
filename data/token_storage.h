// The bytes of a token file: 64 bytes of header, then ids as little-endian u16 or u32. Used by token_file.cpp alone.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ricci {

struct TokenHeader {
  char magic[8] = {'R', 'I', 'C', 'C', 'I', 'T', 'O', 'K'};
  uint32_t version = 1;
  uint32_t bytes_per_token = 0;
  int64_t vocab_size = 0;
  int64_t tokens = 0;
  int64_t text_bytes = 0;
  uint64_t tokenizer_hash = 0;
  uint64_t text_hash = 0;
  uint64_t header_hash = 0;  // of everything above

  uint64_t own_hash() const;
  int64_t file_bytes() const { return static_cast<int64_t>(sizeof *this) + tokens * bytes_per_token; }
};
static_assert(sizeof(TokenHeader) == 64);

// Owns a file descriptor.
class OpenFile {
 public:
  explicit OpenFile(int descriptor = -1) : descriptor_(descriptor) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();
  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

  // Both move `bytes` bytes at a position. read returns fewer only at the end of the file. Errors: what the system says.
  size_t read(void* target, size_t bytes, int64_t position) const;
  void write(const void* source, size_t bytes, int64_t position) const;

 private:
  int descriptor_;
};

// A file without a name, in $TMPDIR or /tmp.
OpenFile open_anonymous_file();

// Empty where the file is complete and its header sound, else what is wrong. Fills the header.
std::string check_token_file(const OpenFile& file, TokenHeader& header);

// Appends ids; the header comes last, so that a file without a sound header is one that was not finished.
class TokenWriter {
 public:
  TokenWriter(const OpenFile& file, int64_t vocab_size);
  void append(std::span<const int64_t> ids);  // error: an id outside the vocabulary
  TokenHeader finish(int64_t text_bytes, uint64_t tokenizer_hash, uint64_t text_hash);

 private:
  const OpenFile& file_;
  TokenHeader header_;
  std::vector<char> packed_;
};

}  // namespace ricci
