// Fuzzes tokenizer.json and the texts that a tokenizer meets.
#include "data/text/utf8.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  fuzz::attempt([&] { read_tokenizer(bytes); });
  fuzz::attempt([&] { read_text(bytes); });
  return 0;
}
