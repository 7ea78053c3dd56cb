// Packing ids, and checking what was packed.
#include "data/tokens/token_storage.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include "core/error.h"
#include "core/files/hash.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "ids and trailer are written as they lie in memory");

uint64_t TokenTrailer::hash() const { return hash_bytes({reinterpret_cast<const char*>(this), offsetof(TokenTrailer, own_hash)}); }

std::string check_token_file(const OpenFile& file, TokenTrailer& trailer) {
  const TokenTrailer sound;
  const int64_t size = file.size(), position = size - static_cast<int64_t>(sizeof trailer);
  if (position < 0) return format_message("it has only {} bytes", {size});
  if (file.read(&trailer, sizeof trailer, position) < sizeof trailer) return "it was cut while it was checked";
  if (std::memcmp(trailer.magic, sound.magic, sizeof sound.magic) != 0) return "it was cut or continued, or is not a token file";
  if (trailer.version != sound.version) return "it is of another version of this program";
  const bool possible =
      (trailer.bytes_per_token == 2 || trailer.bytes_per_token == 4) && trailer.tokens >= 0 && trailer.tokens <= INT64_MAX / 8;
  if (trailer.own_hash != trailer.hash() || !possible) return "its description is damaged";
  if (size != trailer.file_bytes()) return format_message("it has {} bytes instead of {}", {size, trailer.file_bytes()});
  if (hash_of_file(file, 0, position) != trailer.check_hash) return "its tokens are damaged";
  return "";
}

TokenWriter::TokenWriter(FileWriter& file, int64_t vocab_size) : file_(file) {
  trailer_.vocab_size = vocab_size;
  trailer_.tokens_hash = hash_bytes("");
  trailer_.bytes_per_token = vocab_size <= 65536 ? 2 : 4;
}

void TokenWriter::append(std::span<const int64_t> ids) {
  const size_t width = trailer_.bytes_per_token;
  packed_.resize(ids.size() * width);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= trailer_.vocab_size)
      fail("token file: id {} at index {} is outside the vocabulary of {}",
          {ids[i], trailer_.tokens + static_cast<int64_t>(i), trailer_.vocab_size});
    const auto id = static_cast<uint32_t>(ids[i]);
    std::memcpy(packed_.data() + i * width, &id, width);
  }
  file_.write(packed_);
  trailer_.tokens_hash = hash_bytes(packed_, trailer_.tokens_hash);
  check_.add(packed_);
  trailer_.tokens += static_cast<int64_t>(ids.size());
}

void TokenWriter::finish(int64_t text_bytes, uint64_t tokenizer_hash, uint64_t text_hash) {
  trailer_.text_bytes = text_bytes;
  trailer_.tokenizer_hash = tokenizer_hash;
  trailer_.text_hash = text_hash;
  trailer_.check_hash = check_.finish();
  trailer_.own_hash = trailer_.hash();
  file_.write({reinterpret_cast<const char*>(&trailer_), sizeof trailer_});
}

}  // namespace ricci
