// The bytes of a token file: ids as little-endian u16 or u32, then 80 bytes that describe them. The description comes
// last because it holds the number of tokens, which a stream tells only at its end. Used by token_file.cpp alone.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/files/checksum.h"
#include "core/files/file.h"

namespace ricci {

struct TokenTrailer {
  uint32_t version = 3;
  uint32_t bytes_per_token = 0;
  int64_t vocab_size = 0;
  int64_t tokens = 0;
  int64_t text_bytes = 0;
  uint64_t tokenizer_hash = 0;
  uint64_t text_hash = 0;
  uint64_t tokens_hash = 0;  // hash_bytes of the packed ids: their identity, which checkpoints hold too
  uint64_t check_hash = 0;   // hash_of_file of the packed ids: quick to compare when the file is opened
  uint64_t own_hash = 0;     // of everything above
  char magic[8] = {'R', 'I', 'C', 'C', 'I', 'T', 'O', 'K'};

  uint64_t hash() const;
  int64_t file_bytes() const { return tokens * bytes_per_token + static_cast<int64_t>(sizeof *this); }
};
static_assert(sizeof(TokenTrailer) == 80);

// Empty where the file is, byte for byte, what a TokenWriter wrote, else what is wrong. Fills the trailer.
std::string check_token_file(const OpenFile& file, TokenTrailer& trailer);

class TokenWriter {
 public:
  TokenWriter(FileWriter& file, int64_t vocab_size);
  void append(std::span<const int64_t> ids);  // error: an id outside the vocabulary
  void finish(int64_t text_bytes, uint64_t tokenizer_hash, uint64_t text_hash);

 private:
  FileWriter& file_;
  TokenTrailer trailer_;
  BlockHash check_;
  std::string packed_;
};

}  // namespace ricci
