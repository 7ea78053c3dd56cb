#include "data/tokenizers/words/bert_text.h"

#include <algorithm>

#include "data/tokenizers/unicode/classes.h"
#include "data/tokenizers/unicode/forms.h"
#include "data/tokenizers/utf8.h"

namespace ricci {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

// Calls use(code, bytes, class) for every character of valid UTF-8.
template <class Use> void for_each_character(std::string_view text, const Use& use) {
  const uint8_t* const classes = unicode_classes();
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = decode_utf8(text, at);
    use(character.code, text.substr(at, character.bytes), classes[character.code]);
    at += character.bytes;
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

size_t bert_word_end(std::string_view text, size_t at, size_t& space_end) {
  const uint8_t* const classes = unicode_classes();
  const size_t begin = at;
  while (at < text.size()) {
    const Utf8Character character = decode_utf8(text, at);
    const uint8_t kind = classes[character.code];
    if (at == begin && (kind & unicode::space)) {
      space_end = at + character.bytes;
      return begin;
    }
    if (kind & unicode::space) break;
    if (kind & unicode::punctuation) return at == begin ? at + character.bytes : at;
    at += character.bytes;
  }
  return at;
}

}  // namespace ricci
