#include "data/tokenizers/bpe/split.h"

#include <array>
#include <string>

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {
namespace {

constexpr uint8_t kWordClasses = unicode::letter | unicode::number | unicode::space;

// The class of a character (one of kWordClasses, or 0) and the position after it.
struct Character {
  uint8_t kind;
  size_t end;
};

constexpr std::array<uint8_t, 128> kAscii = [] {
  std::array<uint8_t, 128> kinds{};
  for (int c = 'a'; c <= 'z'; ++c) kinds[static_cast<size_t>(c)] = kinds[static_cast<size_t>(c - 'a' + 'A')] = unicode::letter;
  for (int c = '0'; c <= '9'; ++c) kinds[static_cast<size_t>(c)] = unicode::number;
  for (int c = '\t'; c <= '\r'; ++c) kinds[static_cast<size_t>(c)] = unicode::space;
  kinds[' '] = unicode::space;
  return kinds;
}();

inline Character character_at(std::string_view text, size_t position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte < 128) return {kAscii[byte], position + 1};
  const Utf8Character character = decode_utf8(text, position);
  if (character.bytes == 0) return {0, position + 1};
  return {static_cast<uint8_t>(unicode_classes()[character.code] & kWordClasses), position + character.bytes};
}

// The end of the run of characters of this class at `position`.
inline size_t run_end(std::string_view text, size_t position, uint8_t kind) {
  while (position < text.size()) {
    const Character next = character_at(text, position);
    if (next.kind != kind) break;
    position = next.end;
  }
  return position;
}

// The end of the contraction that starts with an apostrophe at `position`, or `position` itself.
size_t contraction_end(std::string_view text, size_t position, bool any_case) {
  const auto letter = [&](size_t i) {
    const char c = i < text.size() ? text[i] : ' ';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(position + 1), second = letter(position + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return position + 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return position + 3;
  const bool long_s = any_case && text.substr(position + 1, 2) == "\xc5\xbf";  // the capital of U+017F is S
  return long_s ? position + 3 : position;
}

// \s+(?!\S)|\s+ : the last white space character belongs to the next word.
size_t space_end(std::string_view text, size_t position) {
  size_t last = position, end = character_at(text, position).end;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != unicode::space) return last > position ? last : end;
    last = end;
    end = next.end;
  }
  return end;
}

size_t gpt2_end(std::string_view text, size_t position) {
  if (text[position] == '\'')
    if (const size_t end = contraction_end(text, position, false); end > position) return end;
  Character first = character_at(text, position);
  if (text[position] == ' ' && first.end < text.size()) {
    const Character second = character_at(text, first.end);
    if (second.kind != unicode::space) first = second;
  }
  return first.kind == unicode::space ? space_end(text, position) : run_end(text, first.end, first.kind);
}

// Each digit is a word. The text between digits is divided into GPT-2's words.
size_t smollm_end(std::string_view text, size_t position) {
  const Character first = character_at(text, position);
  if (first.kind == unicode::number) return first.end;
  if (first.kind == unicode::space) {
    const size_t run = run_end(text, first.end, unicode::space);
    if (run < text.size() && character_at(text, run).kind == unicode::number) return run;
  }
  return gpt2_end(text, position);
}

bool ends_line(char byte) { return byte == '\r' || byte == '\n'; }

size_t llama3_space_end(std::string_view text, size_t position) {
  const size_t run = run_end(text, position, unicode::space);
  for (size_t end = run; end > position; --end)
    if (ends_line(text[end - 1])) return end;
  return space_end(text, position);
}

template <int most_digits> size_t llama3_end(std::string_view text, size_t position) {
  if (text[position] == '\'')
    if (const size_t end = contraction_end(text, position, true); end > position) return end;
  Character first = character_at(text, position);
  if (first.kind == unicode::letter) return run_end(text, first.end, unicode::letter);
  if (first.kind == unicode::number) {
    for (int digits = 1; digits < most_digits && first.end < text.size(); ++digits) {
      const Character next = character_at(text, first.end);
      if (next.kind != unicode::number) break;
      first.end = next.end;
    }
    return first.end;
  }
  if (first.end < text.size() && !ends_line(text[position])) {
    const Character second = character_at(text, first.end);
    if (second.kind == unicode::letter) return run_end(text, second.end, unicode::letter);
    if (text[position] == ' ' && second.kind == 0) first = second;
  }
  if (first.kind == unicode::space) return llama3_space_end(text, position);
  size_t end = run_end(text, first.end, 0);
  while (end < text.size() && ends_line(text[end])) ++end;
  return end;
}

constexpr SplitPattern kPatterns[] = {
    {"gpt2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", false, gpt2_end},
    {"llama3", R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        false, llama3_end<3>},
    {"qwen2", R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", true,
        llama3_end<1>},
    {"smollm", R"(\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)", true, smollm_end},
};

std::string names() {
  std::string list;
  for (const SplitPattern& pattern : kPatterns) list += (list.empty() ? "" : ", ") + std::string(pattern.name);
  return list;
}

}  // namespace

std::span<const SplitPattern> split_patterns() { return kPatterns; }

const SplitPattern& find_pattern(std::string_view name) {
  for (const SplitPattern& pattern : kPatterns)
    if (name == pattern.name) return pattern;
  fail("split pattern: unknown name {}, expected one of {}", {one_line(name), names()});
}

const SplitPattern& find_pattern_by_regex(std::string_view regex) {
  for (const SplitPattern& pattern : kPatterns)
    if (regex == pattern.regex) return pattern;
  fail("split pattern: {} is not known, expected the pattern of {}", {one_line(regex), names()});
}

}  // namespace ricci
