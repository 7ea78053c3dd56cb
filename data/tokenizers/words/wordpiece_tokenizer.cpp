#include "data/tokenizers/words/wordpiece_tokenizer.h"

#include <algorithm>
#include <functional>
#include <set>

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {

namespace {

constexpr int64_t kMaxLetters = 1000;  // in a word

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, WordPieceOptions options)
    : PieceTokenizer(std::move(vocabulary), std::move(added),
          [text = options.text](std::string_view piece, int64_t offset) { return text.normalize(piece, offset); }),
      options_(std::move(options)),
      unknown_(this->vocabulary().find(options_.unknown)) {
  if (unknown_ < 0) fail("wordpiece tokenizer: '{}', for unknown words, is not in the vocabulary", {one_line(options_.unknown)});
  if (options_.prefix.empty()) fail("wordpiece tokenizer: the prefix of pieces that go on with a word is empty");
  if (options_.longest_word < 1 || options_.longest_word > kMaxLetters)
    fail("wordpiece tokenizer: words of {} characters, expected 1 to {}", {options_.longest_word, kMaxLetters});
  const Vocabulary& pieces = this->vocabulary();
  std::set<size_t, std::greater<>> lengths, going_on;
  for (int64_t id = 0; id < model_size(); ++id) {
    const std::string_view piece = pieces.piece(id);
    if (!piece.empty()) lengths.insert(piece.size());
    if (piece.size() > options_.prefix.size() && piece.starts_with(options_.prefix)) going_on.insert(piece.size() - options_.prefix.size());
    if (piece.size() > options_.prefix.size() && piece.starts_with(options_.prefix))
      going_on_.emplace(piece.substr(options_.prefix.size()), static_cast<int32_t>(id));
  }
  lengths_.assign(lengths.begin(), lengths.end());
  lengths_going_on_.assign(going_on.begin(), going_on.end());
}

std::shared_ptr<PieceTokenizer> WordPieceTokenizer::with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const {
  WordPieceOptions options = options_;
  options.post_processor.clear();  // it holds ids
  return std::make_shared<WordPieceTokenizer>(std::move(vocabulary), std::move(added), std::move(options));
}

void WordPieceTokenizer::append_word(std::string_view word, std::vector<int64_t>& ids) const {
  const size_t before = ids.size();
  const auto unknown = [&] {
    ids.resize(before);
    ids.push_back(unknown_);
  };
  if (count_characters(word) > options_.longest_word) return unknown();
  for (size_t begin = 0; begin < word.size();) {
    const std::string_view rest = word.substr(begin);
    size_t length = 0;
    for (const size_t possible : begin == 0 ? lengths_ : lengths_going_on_) {
      if (possible > rest.size()) continue;
      const std::string_view piece = rest.substr(0, possible);
      const auto found = begin > 0 ? going_on_.find(piece) : going_on_.end();
      int32_t id = begin == 0 ? find_in_model(piece) : -1;
      if (found != going_on_.end()) id = found->second;
      if (id < 0) continue;
      ids.push_back(id);
      length = possible;
      break;
    }
    if (length == 0) return unknown();
    begin += length;
  }
}

void WordPieceTokenizer::append_plain(std::string_view text, int64_t, std::vector<int64_t>& ids) const {
  const WordCaches::Loan cache(caches_);
  for (size_t begin = 0; begin < text.size();) {
    size_t space_end = 0;
    const size_t end = bert_word_end(text, begin, space_end);
    if (end > begin) cache->append(text.substr(begin), end - begin, ids, [&] { append_word(text.substr(begin, end - begin), ids); });
    begin = end > begin ? end : space_end;
  }
}

// ASCII's blanks, line ends and signs end a word, whatever is around them. So do the others, and Chinese characters that are words of their
// own. Accents do not wander past them.
bool WordPieceTokenizer::may_cut(std::string_view text, size_t position) const {
  const Utf8Character c = decode_utf8(text, position);
  if (c.bytes == 0) return false;
  const uint8_t ends = unicode::space | unicode::punctuation | (options_.text.ideographs ? unicode::ideograph : 0);
  const uint8_t kind = unicode_classes()[c.code];
  const bool is_kept = !(kind & unicode::other) || c.code == '\t' || c.code == '\n' || c.code == '\r';  // in the normal form
  return (kind & ends) && is_kept;
}

void WordPieceTokenizer::append_text(int64_t id, DecodeState& state, std::string& text) const {
  // Hugging Face's decoder draws these to the word before them.
  static constexpr std::string_view kClose[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
  const std::string_view piece = vocabulary().piece(id);
  const bool goes_on = !state.at_start && piece.starts_with(options_.prefix);
  const auto opens = [&](std::string_view close) { return piece.starts_with(close); };
  const bool close = goes_on || (options_.cleanup && std::any_of(std::begin(kClose), std::end(kClose), opens));
  if (!state.at_start && !close) text += ' ';
  text += goes_on ? piece.substr(options_.prefix.size()) : piece;
  state.at_start = false;
}

std::vector<AddedToken> bert_special_tokens(const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  for (const char* content : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    if (const int32_t id = vocabulary.find(content); id >= 0) tokens.push_back({.id = id, .content = content});
  std::sort(tokens.begin(), tokens.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return tokens;
}

namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

// Calls use(code, bytes, class) for every character of valid UTF-8.
template <class Use> void for_each_character(std::string_view text, const Use& use) {
  const uint8_t* const classes = unicode_classes();
  for (size_t position = 0; position < text.size();) {
    const Utf8Character character = decode_utf8(text, position);
    use(character.code, text.substr(position, character.bytes), classes[character.code]);
    position += character.bytes;
  }
}

constexpr bool is_tab_or_line_end(char32_t code) { return code == '\t' || code == '\n' || code == '\r'; }

std::string cleaned(std::string_view text, bool clean, bool ideographs) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  for_each_character(text, [&](char32_t code, std::string_view bytes, uint8_t kind) {
    const bool control = (kind & unicode::other) && !is_tab_or_line_end(code);
    if (clean && (control || code == 0 || code == 0xfffd)) return;
    if (clean && (kind & unicode::space)) {
      result += ' ';
    } else if (ideographs && (kind & unicode::ideograph)) {
      (result += ' ').append(bytes) += ' ';
    } else {
      result += bytes;
    }
  });
  return result;
}

std::string without_accents(std::string_view text) {
  std::string result;
  for_each_character(decompose_characters(text), [&](char32_t, std::string_view bytes, uint8_t kind) {
    if (!(kind & unicode::nonspacing)) result += bytes;
  });
  return result;
}

std::string lower_case(std::string_view text) {
  std::string result;
  for_each_character(text, [&](char32_t code, std::string_view, uint8_t) { append_lower_case(code, result); });
  return result;
}

std::string ascii_lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::string BertText::normalize(std::string_view text, int64_t offset) const {
  check_utf8("wordpiece tokenizer", text, offset);
  std::string result = clean || ideographs ? cleaned(text, clean, ideographs) : std::string(text);
  if (is_ascii(result)) return lowercase ? ascii_lower_case(std::move(result)) : result;
  if (strip_accents) result = without_accents(result);
  return lowercase ? lower_case(result) : result;
}

size_t bert_word_end(std::string_view text, size_t position, size_t& space_end) {
  const uint8_t* const classes = unicode_classes();
  const size_t begin = position;
  while (position < text.size()) {
    const Utf8Character character = decode_utf8(text, position);
    const uint8_t kind = classes[character.code];
    if (position == begin && (kind & unicode::space)) {
      space_end = position + character.bytes;
      return begin;
    }
    if (kind & unicode::space) break;
    if (kind & unicode::punctuation) return position == begin ? position + character.bytes : position;
    position += character.bytes;
  }
  return position;
}

}  // namespace ricci
