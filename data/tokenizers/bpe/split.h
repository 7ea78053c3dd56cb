// Byte-level BPE divides a text into words before it merges bytes. The patterns are known by their text, and scanned by
// code of our own. A byte that is no valid UTF-8 counts as a character that is neither letter, number nor space.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ricci {

struct SplitPattern {
  enum class Kind : uint8_t { gpt2, llama3, smollm };

  const char* name;
  const char* regex;  // as tokenizer.json files write it; of smollm, which they write as two components, an equal one
  Kind kind;
  int most_digits;  // in a number, for the kind llama3

  // The end of the word that starts at byte `position` of the text, which is inside.
  size_t word_end(std::string_view text, size_t position) const;
};

// All that are known; the first is GPT-2's.
std::span<const SplitPattern> split_patterns();

// Errors: an unknown one; the message lists the known ones.
const SplitPattern& split_pattern_of_name(std::string_view name);
const SplitPattern& split_pattern_of_regex(std::string_view regex);

}  // namespace ricci
