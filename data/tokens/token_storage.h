// The bytes of a token file: ids as little-endian u16 or u32, then 72 bytes that describe them. The description comes
// last because it holds the number of tokens, which a stream tells only at its end. Used by token_file.cpp alone.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/files/file.h"

namespace ricci {

struct TokenTrailer {
  uint32_t version = 2;
  uint32_t bytes_per_token = 0;
  int64_t vocab_size = 0;
  int64_t tokens = 0;
  int64_t text_bytes = 0;
  uint64_t tokenizer_hash = 0;
  uint64_t text_hash = 0;
  uint64_t tokens_hash = 0;  // hash_bytes of the packed ids
  uint64_t own_hash = 0;  // of everything above
  char magic[8] = {'R', 'I', 'C', 'C', 'I', 'T', 'O', 'K'};

  uint64_t hash() const;
  int64_t file_bytes() const { return tokens * bytes_per_token + static_cast<int64_t>(sizeof *this); }
};
static_assert(sizeof(TokenTrailer) == 72);

// A file open for reading; its descriptor is closed at the end.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(const std::string& path);  // false afterwards where the file cannot be opened; errno tells why
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();
  explicit operator bool() const { return descriptor_ >= 0; }

  int64_t size() const;
  // Reads at a position; fewer than `bytes` bytes only at the end of the file. Error: what the system says.
  size_t read(void* target, size_t bytes, int64_t position) const;

 private:
  int descriptor_ = -1;
};

// Empty where the file is complete and its trailer sound, else what is wrong. Fills the trailer.
std::string check_token_file(const OpenFile& file, TokenTrailer& trailer);

class TokenWriter {
 public:
  TokenWriter(FileWriter& file, int64_t vocab_size);
  void append(std::span<const int64_t> ids);  // error: an id outside the vocabulary
  void finish(int64_t text_bytes, uint64_t tokenizer_hash, uint64_t text_hash);

 private:
  FileWriter& file_;
  TokenTrailer trailer_;
  std::string packed_;
};

}  // namespace ricci
