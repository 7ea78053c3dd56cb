#include "data/tokenizers/words/word_tokenizer.h"

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {
namespace {

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Bytes of the white space at `position`, 0 where none is there.
size_t space_bytes(std::string_view text, size_t position) {
  if (static_cast<unsigned char>(text[position]) < 0x80) return is_ascii_space(text[position]) ? 1 : 0;
  const Utf8Character character = decode_utf8(text, position);
  return character.bytes > 0 && (unicode_classes()[character.code] & unicode::space) ? character.bytes : 0;
}

}  // namespace

std::string_view next_spaced_word(std::string_view text, size_t& position) {
  while (position < text.size()) {
    const size_t space = space_bytes(text, position);
    if (space == 0) break;
    position += space;
  }
  const size_t begin = position;
  while (position < text.size() && space_bytes(text, position) == 0) ++position;
  return text.substr(begin, position - begin);
}

WordTokenizer::WordTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, std::string unknown)
    : PieceTokenizer(std::move(vocabulary), std::move(added)),
      unknown_(std::move(unknown)),
      unknown_id_(this->vocabulary().find(unknown_)) {
  if (unknown_id_ < 0) fail("word tokenizer: '{}', for unknown words, is not in the vocabulary", {one_line(unknown_)});
}

std::shared_ptr<PieceTokenizer> WordTokenizer::with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const {
  return std::make_shared<WordTokenizer>(std::move(vocabulary), std::move(added), unknown_);
}

void WordTokenizer::append_plain(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const {
  check_utf8("word tokenizer", text, offset);
  size_t position = 0;
  for (std::string_view word = next_spaced_word(text, position); !word.empty(); word = next_spaced_word(text, position)) {
    const int32_t id = find_in_model(word);
    ids.push_back(id >= 0 ? id : unknown_id_);
  }
}

bool WordTokenizer::may_cut(std::string_view text, size_t position) const { return is_ascii_space(text[position]); }

void WordTokenizer::append_text(int64_t id, DecodeState& state, std::string& text) const {
  if (!state.at_start) text += ' ';
  text += vocabulary().piece(id);
  state.at_start = false;
}

}  // namespace ricci
