// Fuzzes tokenizer.json, the texts that a tokenizer meets, and files of tokens.
#include <cstring>

#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/utf8.h"
#include "data/tokens/token_storage.h"
#include "tests/fuzz/input.h"

using namespace ricci;

namespace {

void read_tokenizer(const std::string& json) {
  const auto tokenizer = tokenizer_from_json(json);
  fuzz::require(tokenizer->vocab_size() > 0, "a tokenizer has tokens");
  fuzz::require(tokenizer_from_json(tokenizer->to_json())->to_json() == tokenizer->to_json(), "JSON brings back the same tokenizer");
  fuzz::require(tokenizer_from_json(tokenizer->to_json())->hash() == tokenizer->hash(), "and the same hash");
  const int64_t last = tokenizer->vocab_size() - 1;
  if (tokenizer->name() != "char" && tokenizer->name() != "byte") return;  // others: pieces.cpp
  fuzz::require(tokenizer->encode(tokenizer->decode({&last, 1})) == std::vector<int64_t>{last}, "an id comes back");
}

void read_text(const std::string& text) {
  fuzz::require(complete_utf8_prefix(text) <= text.size(), "a prefix is not longer than its text");
  fuzz::require(count_characters(text) <= static_cast<int64_t>(text.size()), "a character is a byte at least");
  fuzz::require(ByteTokenizer().decode(ByteTokenizer().encode(text)) == text, "bytes come back");
  const CharTokenizer tokenizer(text);  // as a vocabulary
  fuzz::require(tokenizer.decode(tokenizer.encode(text)) == text, "characters come back");
}

void read_tokens(const std::string& path) {
  TokenTrailer trailer;
  const OpenFile file(path);
  if (check_token_file(file, trailer).empty()) fuzz::require(trailer.file_bytes() == file.size(), "a sound file has its length");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::InputFile input;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  fuzz::attempt([&] { read_tokenizer(bytes); });
  fuzz::attempt([&] { read_text(bytes); });
  fuzz::attempt([&] { read_tokens(input.write(bytes)); });
  if (size < sizeof(TokenTrailer)) return 0;
  // The same with a description whose own hash is right, as somebody may write it.
  std::string crafted = bytes;
  TokenTrailer trailer;
  std::memcpy(static_cast<void*>(&trailer), crafted.data() + size - sizeof trailer, sizeof trailer);
  trailer.version = TokenTrailer().version;
  std::memcpy(trailer.magic, TokenTrailer().magic, sizeof trailer.magic);
  trailer.own_hash = trailer.hash();
  std::memcpy(crafted.data() + size - sizeof trailer, &trailer, sizeof trailer);
  fuzz::attempt([&] { read_tokens(input.write(crafted)); });
  return 0;
}
