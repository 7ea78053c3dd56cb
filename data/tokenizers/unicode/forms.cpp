#include "data/tokenizers/unicode/forms.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include "core/error.h"
#include "data/tokenizers/utf8.h"

namespace ricci {
namespace {

std::string normalize(const icu::Normalizer2* form, UErrorCode status, std::string_view text) {
  std::string result;
  icu::StringByteSink<std::string> sink(&result, static_cast<int32_t>(text.size()));
  if (text.size() > INT32_MAX) fail("normalisation: {} bytes at once, at most {} are possible", {text.size(), INT32_MAX});
  if (U_SUCCESS(status)) form->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, nullptr, status);
  if (U_FAILURE(status)) fail("normalisation: {}", {u_errorName(status)});
  return result;
}

}  // namespace

std::string compose_characters(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const form = icu::Normalizer2::getNFCInstance(status);
  return normalize(form, status, text);
}

bool composes_apart(char32_t before, char32_t behind) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const form = icu::Normalizer2::getNFCInstance(status);
  const auto first = static_cast<UChar32>(before), second = static_cast<UChar32>(behind);
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
  constexpr char32_t capital_i_with_dot = 0x130;  // the only code point whose lower case is more than one
  if (code == capital_i_with_dot) {
    text += "i\xcc\x87";
  } else {
    append_utf8(static_cast<char32_t>(u_tolower(static_cast<UChar32>(code))), text);
  }
}

}  // namespace ricci
