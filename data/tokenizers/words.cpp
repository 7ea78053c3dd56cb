#include "data/tokenizers/words.h"

#include <algorithm>

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {
namespace {

constexpr int64_t kMaxLetters = 1000;  // in a word

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Returns the number of bytes of the white space at `position`, or 0.
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
  if (unknown_id_ < 0) fail("word tokenizer: the token '{}' for unknown words is not in the vocabulary", {one_line(unknown_)});
}

std::shared_ptr<PieceTokenizer> WordTokenizer::with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const {
  return std::make_shared<WordTokenizer>(std::move(vocabulary), std::move(added), unknown_);
}

void WordTokenizer::append_plain(std::string_view text, int64_t offset, bool, std::vector<int64_t>& ids) const {
  check_utf8("word tokenizer", text, offset);
  size_t position = 0;
  for (std::string_view word = next_spaced_word(text, position); !word.empty(); word = next_spaced_word(text, position)) {
    const int32_t id = find_in_model(word);
    ids.push_back(id >= 0 ? id : unknown_id_);
  }
}

bool WordTokenizer::can_cut(std::string_view text, size_t position) const { return is_ascii_space(text[position]); }

void WordTokenizer::append_text(int64_t id, DecodeState& state, std::string& text) const {
  if (!state.at_start) text += ' ';
  text += vocabulary().piece(id);
  state.at_start = false;
}

// ---- WordPiece
WordPieceTokenizer::WordPieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, WordPieceOptions options)
    : PieceTokenizer(std::move(vocabulary), std::move(added),
          [text = options.text](std::string_view piece, int64_t offset, bool) { return text.normalize(piece, offset); }),
      options_(std::move(options)),
      unknown_(this->vocabulary().find(options_.unknown)) {
  if (unknown_ < 0) fail("wordpiece tokenizer: the token '{}' for unknown words is not in the vocabulary", {one_line(options_.unknown)});
  if (options_.prefix.empty()) fail("wordpiece tokenizer: the prefix of tokens that continue a word is empty");
  if (options_.longest_word < 1 || options_.longest_word > kMaxLetters)
    fail("wordpiece tokenizer: the longest word has {} characters, expected 1 to {}", {options_.longest_word, kMaxLetters});
  for (int64_t id = 0; id < model_size(); ++id) longest_ = std::max(longest_, this->vocabulary().piece(id).size());
}

std::shared_ptr<PieceTokenizer> WordPieceTokenizer::with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const {
  WordPieceOptions options = options_;
  options.post_processor = nullptr;  // it contains ids
  return std::make_shared<WordPieceTokenizer>(std::move(vocabulary), std::move(added), std::move(options));
}

void WordPieceTokenizer::append_word(std::string_view word, std::vector<int64_t>& ids) const {
  const size_t before = ids.size();
  const auto unknown = [&] {
    ids.resize(before);
    ids.push_back(unknown_);
  };
  if (count_characters(word) > options_.longest_word) return unknown();
  std::string piece;
  for (size_t begin = 0, start = 0; begin < word.size(); begin += piece.size() - start) {
    piece = begin > 0 ? options_.prefix : "";
    start = piece.size();
    piece += word.substr(begin, longest_);
    int32_t id = find_in_model(piece);
    for (; id < 0 && piece.size() > start; id = find_in_model(piece)) piece.pop_back();
    if (piece.size() == start) return unknown();
    ids.push_back(id);
  }
}

void WordPieceTokenizer::append_plain(std::string_view text, int64_t, bool, std::vector<int64_t>& ids) const {
  WordCache& cache = cache_owner_.cache();
  size_t position = 0;
  for (std::string_view word = next_bert_word(text, position); !word.empty(); word = next_bert_word(text, position))
    cache.append(text.substr(position - word.size()), word.size(), ids, [&] { append_word(word, ids); });
}

// White space and punctuation end a word, and so do Chinese characters if each is a word. Normalization never moves accents past these
// characters.
bool WordPieceTokenizer::can_cut(std::string_view text, size_t position) const {
  const Utf8Character c = decode_utf8(text, position);
  if (c.bytes == 0) return false;
  const uint8_t ends = unicode::space | unicode::punctuation | (options_.text.ideographs ? unicode::ideograph : 0);
  const uint8_t kind = unicode_classes()[c.code];
  const bool is_kept = !(kind & unicode::other) || c.code == '\t' || c.code == '\n' || c.code == '\r';  // when normalized
  return (kind & ends) && is_kept;
}

void WordPieceTokenizer::append_text(int64_t id, DecodeState& state, std::string& text) const {
  // Hugging Face's decoder joins these to the previous word.
  static constexpr std::string_view kClose[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
  const std::string_view piece = vocabulary().piece(id);
  const bool continues = !state.at_start && piece.starts_with(options_.prefix);
  const auto opens = [&](std::string_view close) { return piece.starts_with(close); };
  const bool close = continues || (options_.cleanup && std::any_of(std::begin(kClose), std::end(kClose), opens));
  if (!state.at_start && !close) text += ' ';
  text += continues ? piece.substr(options_.prefix.size()) : piece;
  state.at_start = false;
}

std::vector<AddedToken> find_bert_tokens(const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  for (const char* content : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    if (const int32_t id = vocabulary.find(content); id >= 0) tokens.push_back({.id = id, .content = content});
  std::sort(tokens.begin(), tokens.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return tokens;
}

std::string BertText::normalize(std::string_view text, int64_t offset) const {
  check_utf8("wordpiece tokenizer", text, offset);
  const auto is_ascii = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
  const bool decomposes = strip_accents && !std::all_of(text.begin(), text.end(), is_ascii);
  const std::string decomposed = decomposes ? decompose_characters(text) : "";
  const std::string_view whole = decomposes ? decomposed : text;
  const uint8_t* const classes = unicode_classes();
  std::string result;
  result.reserve(whole.size() + whole.size() / 8);
  for (size_t position = 0; position < whole.size();) {
    const Utf8Character c = decode_utf8(whole, position);
    const std::string_view bytes = whole.substr(position, c.bytes);
    const uint8_t kind = classes[c.code];
    const bool is_control = (kind & unicode::other) && c.code != '\t' && c.code != '\n' && c.code != '\r';
    const bool stands_alone = ideographs && (kind & unicode::ideograph);
    position += c.bytes;
    if (clean && (is_control || c.code == 0 || c.code == 0xfffd)) continue;
    if (strip_accents && (kind & unicode::nonspacing)) continue;
    if (stands_alone) result += ' ';
    if (clean && (kind & unicode::space)) result += ' ';
    else if (lowercase) append_lower_case(c.code, result);
    else result += bytes;
    if (stands_alone) result += ' ';
  }
  return result;
}

std::string_view next_bert_word(std::string_view text, size_t& position) {
  const uint8_t* const classes = unicode_classes();
  size_t begin = position;
  while (position < text.size()) {
    const Utf8Character character = decode_utf8(text, position);
    const uint8_t kind = classes[character.code];
    if ((kind & (unicode::space | unicode::punctuation)) && position > begin) break;
    position += character.bytes;
    if (kind & unicode::punctuation) break;
    if (kind & unicode::space) begin = position;
  }
  return text.substr(begin, position - begin);
}

}  // namespace ricci
