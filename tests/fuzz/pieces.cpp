// Fuzzes tokenizer.json files with tokens, and the texts that such tokenizers encode, also as a message. The input is the JSON, a byte
// 0xff, and the text.
#include <algorithm>

#include "data/text/utf8.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/piece_tokenizer.h"
#include "tests/fuzz/input.h"

using namespace ricci;

namespace {

// Decoding token by token gives the same text as decoding together, and holds back at most the beginning of a character.
void check_decoding(const Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  DecodeState state;
  std::string text;
  for (const int64_t id : ids) {
    text += tokenizer.decode_next(id, state);
    fuzz::require(state.held.size() < 4, "only the beginning of a character is held back");
  }
  fuzz::require(text + tokenizer.decode_end(state) == tokenizer.decode(ids), "a stream of tokens gives the same text");
}

// Wherever complete_prefix allows a cut, both sides encode to the ids of the full text.
void check_cuts(const Tokenizer& tokenizer, const std::string& text, const std::vector<int64_t>& ids) {
  for (size_t known = 1; known <= text.size() && known <= 64; ++known) {
    const size_t cut = tokenizer.complete_prefix(std::string_view(text).substr(0, known));
    fuzz::require(cut <= known, "a prefix is not longer than its text");
    if (cut == 0) continue;
    std::vector<int64_t> both;
    tokenizer.append_ids(std::string_view(text).substr(0, cut), 0, both);
    tokenizer.append_ids(std::string_view(text).substr(cut), static_cast<int64_t>(cut), both);
    fuzz::require(both == ids, "both sides of a cut encode on their own");
  }
}

// No text of a message gives the id of an added token.
void check_message(const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& text) {
  const auto* const pieces = dynamic_cast<const PieceTokenizer*>(tokenizer.get());
  if (!pieces || pieces->added_tokens().empty()) return;
  const std::string end = pieces->added_tokens()[0].content, message = "{content}" + end;
  EncodedDocument encoded;
  ChatEncoder(tokenizer, chat_template({"", message, message, message, end, ""})).append_message({ChatRole::user, text}, encoded);
  std::vector<int64_t>& ids = encoded.ids;
  const int64_t unknown = pieces->find(pieces->unknown());
  fuzz::require(!ids.empty() && ids.back() == pieces->added_tokens()[0].id, "a message ends with the end of its template");
  ids.pop_back();
  for (const AddedToken& token : pieces->added_tokens())
    fuzz::require(token.id == unknown || std::count(ids.begin(), ids.end(), token.id) == 0, "no text gives the id of an added token");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const size_t end = bytes.find('\xff');
  const std::string text = end == bytes.npos ? "" : bytes.substr(end + 1);
  fuzz::attempt([&] {
    const auto tokenizer = tokenizer_from_json(bytes.substr(0, end));
    const std::string json = tokenizer->to_json();
    fuzz::require(tokenizer_from_json(json)->to_json() == json, "JSON brings back the same tokenizer");
    const std::vector<int64_t> ids = tokenizer->encode(text);
    for (const int64_t id : ids) fuzz::require(id >= 0 && id < tokenizer->vocab_size(), "ids are in the vocabulary");
    check_decoding(*tokenizer, ids);
    check_cuts(*tokenizer, text, ids);
    fuzz::attempt([&] { check_message(tokenizer, text); });
  });
  return 0;
}
