#include "data/tokenizers/tokenizer.h"

#include <utility>

#include "core/error.h"
#include "core/files/checksum.h"
#include "data/tokenizers/encode.h"
#include "data/tokenizers/utf8.h"

namespace ricci {

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  const Passage whole{text};
  std::vector<EncodedPart> parts = ricci::encode(*this, {&whole, 1});
  if (parts.size() == 1) return std::move(parts[0].ids);
  size_t count = 0;
  for (const EncodedPart& part : parts) count += part.ids.size();
  std::vector<int64_t> ids;
  ids.reserve(count);
  for (const EncodedPart& part : parts) ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  DecodeState state;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size())
      fail("{} tokenizer: id {} at index {} is outside the vocabulary of {}", {name(), ids[i], i, vocab_size()});
    append_text(ids[i], state, text);
  }
  return text;
}

std::string Tokenizer::decode_next(int64_t id, DecodeState& state) const {
  if (id < 0 || id >= vocab_size()) fail("{} tokenizer: id {} is outside the vocabulary of {}", {name(), id, vocab_size()});
  std::string text = std::move(state.held);
  append_text(id, state, text);
  const size_t complete = complete_utf8_prefix(text);
  state.held = text.substr(complete);
  text.resize(complete);
  return text;
}

DecodeState Tokenizer::state_behind(std::span<const int64_t> ids) const {
  DecodeState state;
  for (const int64_t id : ids) decode_next(id, state);
  state.held.clear();
  return state;
}

std::string Tokenizer::decode_end(DecodeState& state) const { return std::exchange(state.held, ""); }

uint64_t Tokenizer::hash() const { return hash_bytes(to_json()); }

}  // namespace ricci
