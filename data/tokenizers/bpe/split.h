// Byte-level BPE divides a text into words before it merges bytes. Tokenizer files define words by a regular expression. The known ones are
// recognised by their text and matched by a function each, because a general matcher would be many times slower. An invalid byte counts as
// a character that is neither letter, number nor space.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace ricci {

struct SplitPattern {
  const char* name;
  const char* regex;     // as in tokenizer.json files; smollm has two equivalent components there
  bool divides_numbers;  // each digit is a word
  // The end of the word that starts at byte `position`, inside the text.
  size_t (*word_end)(std::string_view text, size_t position);
};

// All known patterns; the first is GPT-2's.
std::span<const SplitPattern> split_patterns();

// Error: unknown; the message lists the known patterns.
const SplitPattern& find_pattern(std::string_view name);
const SplitPattern& find_pattern_by_regex(std::string_view regex);

}  // namespace ricci
