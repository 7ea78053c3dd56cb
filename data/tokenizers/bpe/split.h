// Byte-level BPE divides a text into words before it merges bytes. Tokenizer files define words by a regular expression. Each known
// expression is recognized by its text and matched by its own function, many times faster than by a general matcher. An invalid byte is a
// character that is neither letter, number nor space.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace ricci {

struct SplitPattern {
  const char* name;
  const char* regex;     // as in tokenizer.json files; there, two equivalent components define smollm
  bool divides_numbers;  // each digit is a word
  // The end of the word at byte `position` of the text.
  size_t (*word_end)(std::string_view text, size_t position);
};

// All known patterns; the first is GPT-2's.
std::span<const SplitPattern> split_patterns();

// Error: the pattern is unknown; the message lists the known ones.
const SplitPattern& find_pattern(std::string_view name);
const SplitPattern& find_pattern_by_regex(std::string_view regex);

}  // namespace ricci
