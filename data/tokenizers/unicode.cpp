#include "data/tokenizers/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "data/text/utf8.h"

namespace ricci {
namespace {

uint8_t class_of(UCharCategory category) {
  const uint32_t bit = U_MASK(category);
  if (bit & U_GC_L_MASK) return unicode::letter;
  if (bit & U_GC_N_MASK) return unicode::number;
  if (bit & U_GC_P_MASK) return unicode::punctuation;
  if (bit & U_GC_MN_MASK) return unicode::nonspacing;
  if (bit & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) return unicode::other;
  return 0;
}

// The blocks of Chinese characters in BERT's tokenization.py.
constexpr char32_t kIdeographs[][2] = {{0x4e00, 0x9fff}, {0x3400, 0x4dbf}, {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
    {0x2b820, 0x2ceaf}, {0xf900, 0xfaff}, {0x2f800, 0x2fa1f}};

std::vector<uint8_t> classes_of_all() {
  std::vector<uint8_t> classes(kLargestCodePoint + 1);
  const auto fill = [](const void* context, UChar32 begin, UChar32 end, UCharCategory category) -> UBool {
    uint8_t* const classes = static_cast<std::vector<uint8_t>*>(const_cast<void*>(context))->data();
    std::fill(classes + begin, classes + end, class_of(category));
    return true;
  };
  u_enumCharTypes(fill, &classes);
  constexpr char32_t past_last_space = 0x3001;  // all White_Space is below this
  for (char32_t code = 0; code < past_last_space; ++code)
    if (u_isUWhiteSpace(static_cast<UChar32>(code))) classes[code] |= unicode::space;
  for (char32_t code = '!'; code <= '~'; ++code)
    if (!(classes[code] & (unicode::letter | unicode::number))) classes[code] |= unicode::punctuation;
  for (const auto& [first, last] : kIdeographs)
    for (char32_t code = first; code <= last; ++code) classes[code] |= unicode::ideograph;
  return classes;
}

std::string normalize(const icu::Normalizer2* form, UErrorCode status, std::string_view text) {
  std::string result;
  icu::StringByteSink<std::string> sink(&result, static_cast<int32_t>(text.size()));
  if (text.size() > INT32_MAX) fail("normalization: the text has {} bytes, expected at most {}", {text.size(), INT32_MAX});
  if (U_SUCCESS(status)) form->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, nullptr, status);
  if (U_FAILURE(status)) fail("normalization: {}", {u_errorName(status)});
  return result;
}

}  // namespace

const uint8_t* unicode_classes() {
  static const std::vector<uint8_t> classes = classes_of_all();
  return classes.data();
}

bool is_python_space(char32_t code) { return (code >= 0x1c && code <= 0x1f) || (unicode_classes()[code] & unicode::space) != 0; }

bool is_word_character(char32_t code) {
  const auto c = static_cast<UChar32>(code);
  const bool is_of_category = U_GET_GC_MASK(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK);
  return is_of_category || u_hasBinaryProperty(c, UCHAR_ALPHABETIC) || u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL);
}

std::string compose_characters(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const form = icu::Normalizer2::getNFCInstance(status);
  return normalize(form, status, text);
}

bool composes_apart(char32_t before, char32_t after) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const form = icu::Normalizer2::getNFCInstance(status);
  const auto first = static_cast<UChar32>(before), second = static_cast<UChar32>(after);
  const bool apart =
      U_SUCCESS(status) && form->hasBoundaryBefore(first) && form->isInert(second) && form->isNormalized(icu::UnicodeString(first), status);
  return apart && U_SUCCESS(status);
}

std::string decompose_characters(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const form = icu::Normalizer2::getNFDInstance(status);
  return normalize(form, status, text);
}

void append_lower_case(char32_t code, std::string& text) {
  constexpr char32_t capital_i_with_dot = 0x130;  // the only character with a lower-case form of two code points
  if (code < 0x80) text += static_cast<char>(code >= 'A' && code <= 'Z' ? code - 'A' + 'a' : code);
  else if (code == capital_i_with_dot) text += "i\xcc\x87";
  else append_utf8(static_cast<char32_t>(u_tolower(static_cast<UChar32>(code))), text);
}

}  // namespace ricci
