// Byte-level BPE divides a text into words before it merges bytes. The patterns are known by their text, and scanned by
// code of our own. A byte that is no valid UTF-8 counts as a character that is neither letter, number nor space.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace ricci {

struct SplitPattern {
  const char* name;
  const char* regex;     // as tokenizer.json files write it; of smollm, which they write as two components, an equal one
  bool divides_numbers;  // each digit is a word
  // The end of the word that starts at byte `position` of the text, which is inside.
  size_t (*word_end)(std::string_view text, size_t position);
};

// All that are known; the first is GPT-2's.
std::span<const SplitPattern> split_patterns();

// Errors: an unknown one; the message lists the known ones.
const SplitPattern& split_pattern_of_name(std::string_view name);
const SplitPattern& split_pattern_of_regex(std::string_view regex);

}  // namespace ricci
