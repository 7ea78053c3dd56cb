// The split patterns, against what regular expressions give.
#include "data/tokenizers/bpe/split.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

using Words = std::vector<std::string>;

Words words_of(const char* pattern, const std::string& text) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = split_pattern_of_name(pattern).word_end(text, at);
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace

TEST_CASE("split: GPT-2's pattern") {
  CHECK(words_of("gpt2", "Hello world") == Words{"Hello", " world"});
  CHECK(words_of("gpt2", "Hello   World  ") == Words{"Hello", "  ", " World", "  "});
  CHECK(words_of("gpt2", "don't IT'S x'sy we'll") == Words{"don", "'t", " IT", "'", "S", " x", "'s", "y", " we", "'ll"});
  CHECK(words_of("gpt2", "a1b22 333 ½") == Words{"a", "1", "b", "22", " 333", " ½"});
  CHECK(words_of("gpt2", "x\n\n y\t\tz") == Words{"x", "\n\n", " y", "\t", "\t", "z"});
  CHECK(words_of("gpt2", "(a) --- $5.99!") == Words{"(", "a", ")", " ---", " $", "5", ".", "99", "!"});
  CHECK(words_of("gpt2", "é\u3000я e\u0301") == Words{"é", "\u3000", "я", " e", "\u0301"});
  CHECK(words_of("gpt2", "a\xff\xfe b") == Words{"a", "\xff\xfe", " b"});
  CHECK(words_of("gpt2", " '") == Words{" '"});
}

TEST_CASE("split: Llama 3's pattern, and Qwen 2's with single digits") {
  CHECK(words_of("llama3", "IT'S they'LL it'\u017f") == Words{"IT", "'S", " they", "'LL", " it", "'\u017f"});
  CHECK(words_of("llama3", "12345 6") == Words{"123", "45", " ", "6"});
  CHECK(words_of("qwen2", "123 4") == Words{"1", "2", "3", " ", "4"});
  CHECK(words_of("llama3", "\tabc (abc) $abc") == Words{"\tabc", " (", "abc", ")", " $", "abc"});
  CHECK(words_of("llama3", "end.\r\n\nnext") == Words{"end", ".\r\n\n", "next"});
  CHECK(words_of("llama3", "a \n  \n  b") == Words{"a", " \n  \n", " ", " b"});
  CHECK(words_of("llama3", "a   b  ") == Words{"a", "  ", " b", "  "});
  CHECK(words_of("llama3", "\n\nabc") == Words{"\n\n", "abc"});
}

TEST_CASE("split: SmolLM's numbers alone, and GPT-2's words between them") {
  CHECK(words_of("smollm", "a1b22 333 ½") == Words{"a", "1", "b", "2", "2", " ", "3", "3", "3", " ", "½"});
  CHECK(words_of("smollm", "x  1   y  ") == Words{"x", "  ", "1", "  ", " y", "  "});
  CHECK(words_of("smollm", "don't 5's\n7") == Words{"don", "'t", " ", "5", "'s", "\n", "7"});
  CHECK(words_of("smollm", "$5.99\u3000٣ \xff"
                           "1") == Words{"$", "5", ".", "9", "9", "\u3000", "٣", " \xff", "1"});
}

TEST_CASE("split: a text that may go on is divided only where nothing that follows moves the end of a word") {
  Sequence sequence(5);
  const char* const kinds[] = {
      "a", "B", "'s", "'", "l", " ", "  ", "\n", "\t", "1", "23", ".", "é", "語", "\u3000", "\xff", "\xe3\x80", "😀"};
  for (const SplitPattern& pattern : split_patterns())
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (uint64_t n = 1 + sequence.below(20); n > 0; --n) text += kinds[sequence.below(std::size(kinds))];
      const size_t known = 1 + sequence.below(text.size());
      const size_t cut = certain_split(pattern, text.substr(0, known));
      if (cut == 0) continue;
      Words both = words_of(pattern.name, text.substr(0, cut));
      for (const std::string& word : words_of(pattern.name, text.substr(cut))) both.push_back(word);
      if (both != words_of(pattern.name, text)) FAIL(pattern.name << ": '" << text << "' cut at " << cut);
    }
}

TEST_CASE("split: patterns are known by name and by their text, others are errors") {
  for (const SplitPattern& pattern : split_patterns())
    CHECK(&split_pattern_of_regex(pattern.regex) == &split_pattern_of_name(pattern.name));
  CHECK(error_of([] { split_pattern_of_name("gpt5"); }) == "split pattern: unknown name gpt5, known are gpt2, llama3, qwen2, smollm");
  CHECK(error_of([] { split_pattern_of_regex("\\w+"); }) == "split pattern: \\w+ is not known; known are: gpt2, llama3, qwen2, smollm");
}
