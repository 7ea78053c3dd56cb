// What BERT does to a text before it looks for pieces, as in its tokenization.py and in Hugging Face's BertNormalizer and
// BertPreTokenizer.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ricci {

struct BertText {
  bool clean = true;       // white space becomes a blank; control characters, U+0000 and U+FFFD go
  bool ideographs = true;  // a Chinese character is a word of its own
  bool strip_accents = false;
  bool lowercase = false;

  // The text in its normal form. Error: not UTF-8, with the byte's place where the text starts at `offset`.
  std::string normalize(std::string_view text, int64_t offset) const;
};

// The end of the word that starts at byte `at` of a text in normal form: a punctuation character, or all up to the next one or
// white space. `at` itself where white space is there, whose end is then in `space_end`.
size_t bert_word_end(std::string_view text, size_t at, size_t& space_end);

}  // namespace ricci
