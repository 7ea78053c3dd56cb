// Fuzzes tokenizer.json and the texts of a tokenizer.
#include <algorithm>

#include "data/text/utf8.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/fuzz/input.h"

using namespace ricci;

namespace {

void end_documents(const std::shared_ptr<const Tokenizer>& tokenizer) {
  const auto ended = with_eos(tokenizer, Eos::document);
  std::vector<int64_t> end;
  ended->append_end("", end);
  fuzz::require(end.size() == 1 && ended->marks().ends[0] == end[0], "the piece after a document ends a text");
  fuzz::require(ended->find(end_of_text(*ended)) == end[0], "and has a name");
  fuzz::require(with_own_eos(ended) == ended && with_eos(ended, Eos::document) == ended, "and is there once");
  fuzz::require(tokenizer_from_json(ended->model_json().dump())->eos() == Eos::none, "other programs read the tokenizer inside");
  fuzz::require(tokenizer_from_json(ended->to_json())->hash() == ended->hash(), "JSON also brings it back");
}

void read_tokenizer(const std::string& json) {
  const auto tokenizer = tokenizer_from_json(json);
  fuzz::require(tokenizer->vocab_size() > 0, "a tokenizer has tokens");
  fuzz::require(tokenizer_from_json(tokenizer->to_json())->to_json() == tokenizer->to_json(), "JSON brings back the same tokenizer");
  fuzz::require(tokenizer_from_json(tokenizer->to_json())->hash() == tokenizer->hash(), "and the same hash");
  fuzz::attempt([&] { end_documents(tokenizer); });
  const int64_t last = tokenizer->vocab_size() - 1;
  if (tokenizer->name() != "char" && tokenizer->name() != "byte") return;  // others: pieces.cpp
  const std::string text = tokenizer->decode({&last, 1});
  const std::vector<int64_t> ids = tokenizer->encode(text);
  const bool is_end = tokenizer->eos() != Eos::line && tokenizer->find(text) == last;  // a character token that no text has
  fuzz::require(is_end ? std::find(ids.begin(), ids.end(), last) == ids.end() : ids == std::vector<int64_t>{last}, "an id comes back");
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
