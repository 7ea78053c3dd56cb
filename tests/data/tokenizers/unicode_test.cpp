// Classes and forms of characters, against the Unicode standard's own examples.
#include "data/tokenizers/unicode.h"

#include <doctest/doctest.h>

#include "data/text/utf8.h"

using namespace ricci;

namespace {

uint8_t class_of(char32_t code) { return unicode_classes()[code]; }

std::string lower(char32_t code) {
  std::string text;
  append_lower_case(code, text);
  return text;
}

}  // namespace

TEST_CASE("unicode: classes of characters") {
  for (const char32_t code : {U'a', U'Z', U'é', U'я', U'ß', U'ʰ', U'א', U'あ', U'ǅ'}) CHECK(class_of(code) == unicode::letter);
  for (const char32_t code : {U'0', U'9', U'½', U'²', U'Ⅷ', U'٣', U'१'}) CHECK(class_of(code) == unicode::number);
  for (const char32_t code : {U' ', U'\u00a0', U'\u2003', U'\u3000', U'\u2028', U'\u202f'}) CHECK(class_of(code) == unicode::space);
  for (const char32_t code : {U'\t', U'\n', U'\r', U'\u0085'}) CHECK(class_of(code) == (unicode::space | unicode::other));
  for (const char32_t code : {U'.', U'!', U'$', U'+', U'^', U'`', U'~', U'¿', U'“', U'—', U'。'})
    CHECK(class_of(code) == unicode::punctuation);
  for (const char32_t code : {U'\u0301', U'\u0308', U'\u05b4'}) CHECK(class_of(code) == unicode::nonspacing);
  for (const char32_t code : {U'\0', U'\u001f', U'\u007f', U'\u200b', U'\u200d', U'\ufeff', U'\ue000'})
    CHECK(class_of(code) == unicode::other);
  for (const char32_t code : {U'中', U'語', U'\U00020000', U'\uf900'}) CHECK(class_of(code) == (unicode::letter | unicode::ideograph));
  for (const char32_t code : {U'€', U'±', U'😀', U'\u0378', U'\U0010ffff'}) CHECK(class_of(code) == 0);  // signs, and what is unassigned
  int spaces = 0;
  for (char32_t code = 0; code <= kLargestCodePoint; ++code) spaces += (class_of(code) & unicode::space) != 0;
  CHECK(spaces == 25);
}

TEST_CASE("unicode: normal forms and lower case") {
  CHECK(compose_characters("e\u0301 A\u030a") == "\u00e9 \u00c5");
  CHECK(decompose_characters("\u00e9 \u00c5 \u1e9b\u0323") == "e\u0301 A\u030a \u017f\u0323\u0307");
  CHECK(decompose_characters("한") == "\u1112\u1161\u11ab");
  CHECK(compose_characters("") == "");
  CHECK(lower(U'A') == "a");
  CHECK(lower(U'Ü') == "ü");
  CHECK(lower(U'Σ') == "σ");
  CHECK(lower(U'İ') == "i\u0307");
  CHECK(lower(U'ß') == "ß");
}

TEST_CASE("utf8: what is not UTF-8 is replaced as the Unicode standard recommends") {
  const std::string mark = "\xef\xbf\xbd";
  CHECK(replace_invalid_utf8("aé語𝄞") == "aé語𝄞");
  CHECK(replace_invalid_utf8("a\xff"
                             "b") == "a" + mark + "b");
  CHECK(replace_invalid_utf8("\xf0\x9d\x84") == mark);  // the beginning of one character
  CHECK(replace_invalid_utf8("\xe2\x82|\xf0\x9d|") == mark + "|" + mark + "|");
  CHECK(replace_invalid_utf8("\xed\xa0\x80") == mark + mark + mark);  // a surrogate
  CHECK(replace_invalid_utf8("\xc0\xaf\xe0\x80\xbf") == mark + mark + mark + mark + mark);
  CHECK(replace_invalid_utf8("\xf4\x91\x92\x93\xff\x41\x80\xbf") == mark + mark + mark + mark + mark + "A" + mark + mark);
}
