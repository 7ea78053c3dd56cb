// Byte pair encoding: merges against the definition, decoding of every byte string, options, error texts; and the split patterns, against
// the matches of regular expressions.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/bpe/split.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

using Ids = std::vector<int64_t>;

std::vector<std::string> all_letters() {
  std::vector<std::string> letters;
  for (int byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    letters.push_back(bytes_to_letters({&letter, 1}));
  }
  return letters;
}

// The ids of the 256 bytes are their values. The merged tokens follow in the order of the merges.
std::shared_ptr<BpeTokenizer> tokenizer_of(
    const std::vector<BpeTokenizer::Pair>& merges, std::vector<AddedToken> added = {}, BpeOptions options = {}) {
  std::vector<std::string> pieces = all_letters();
  for (const auto& [left, right] : merges) pieces.push_back(left + right);
  return std::make_shared<BpeTokenizer>(Vocabulary(pieces), merges, std::move(added), std::move(options));
}

// The definition: merge the leftmost of the pairs of lowest rank, until none is left. A duplicate pair has its last rank.
std::vector<uint32_t> merged_by_definition(const std::vector<Merges::Merge>& merges, std::vector<uint32_t> pieces) {
  for (;;) {
    size_t best = merges.size(), at = 0;
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      size_t rank = merges.size();
      for (size_t listed = 0; listed < merges.size(); ++listed)
        if (merges[listed].left == pieces[i] && merges[listed].right == pieces[i + 1]) rank = listed;
      if (rank < best) best = rank, at = i;
    }
    if (best == merges.size()) return pieces;
    pieces[at] = merges[best].merged;
    pieces.erase(pieces.begin() + static_cast<int64_t>(at) + 1);
  }
}

using Words = std::vector<std::string>;

Words words_of(const char* pattern, const std::string& text) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = find_pattern(pattern).word_end(text, at);
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace

TEST_CASE("byte letters: printable bytes are themselves, a space is U+0120") {
  CHECK(bytes_to_letters("az !\n") == "azĠ!Ċ");
  CHECK(letters_to_bytes("azĠ!Ċ") == "az !\n");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(letters_to_bytes(bytes_to_letters(all)) == all);
  CHECK(!letters_to_bytes("a b"));
  CHECK(!letters_to_bytes("語"));
}

TEST_CASE("merges: short and long words, against the definition") {
  Sequence sequence(3);
  for (int round = 0; round < 100; ++round) {
    // A random list: tokens 0 to 3 are letters, each merge makes the next token from any two earlier ones.
    std::vector<Merges::Merge> list;
    for (uint32_t made = 4; made < 30; ++made)
      list.push_back({static_cast<uint32_t>(sequence.below(made)), static_cast<uint32_t>(sequence.below(made)), made});
    const Merges merges(list);
    std::vector<uint32_t> word(1 + sequence.below(round % 2 ? 48 : 200));
    for (uint32_t& piece : word) piece = static_cast<uint32_t>(sequence.below(4));
    const std::vector<uint32_t> expected = merged_by_definition(list, word);
    word.resize(merges.apply(word));
    if (word != expected) FAIL("round " << round);
  }
}

TEST_CASE("bpe tokenizer: random byte strings come back, whole and as a stream") {
  const auto gpt2 = tokenizer_of({{"t", "h"}, {"Ġ", "th"}, {"Ã", "©"}, {"a", "a"}, {"aa", "aa"}, {"ÿ", "ÿ"}});
  const auto llama3 =
      tokenizer_of({{"t", "h"}, {"Ġ", "th"}, {"Ã", "©"}}, {{.id = 259, .content = "<|end|>"}}, {.pattern = &find_pattern("llama3")});
  Sequence sequence(11);
  for (int round = 0; round < 1'000; ++round) {
    std::string text;
    const uint64_t length = sequence.below(60);
    while (text.size() < length) {
      const uint64_t kind = sequence.below(4);
      if (kind == 0) text += static_cast<char>(sequence.below(256));
      if (kind == 1) text += "the  'll\n\xc3\xa9\xe8\xaa\x9e"[sequence.below(14)];
      if (kind == 2) text += std::string(sequence.below(9), 'a');
      if (kind == 3) text += mixed_text(1, sequence.below(1000));
    }
    for (const Tokenizer* tokenizer : {static_cast<const Tokenizer*>(gpt2.get()), static_cast<const Tokenizer*>(llama3.get())}) {
      const Ids ids = tokenizer->encode(text);
      if (tokenizer->decode(ids) != text) FAIL("round " << round);
      DecodeState state;
      std::string stream;
      for (const int64_t id : ids) stream += tokenizer->decode_next(id, state);
      if (stream + tokenizer->decode_end(state) != text) FAIL("round " << round << ", as a stream");
    }
  }
}

TEST_CASE("bpe tokenizer: options") {
  const std::vector<BpeTokenizer::Pair> merges = {{"a", "b"}};
  std::vector<std::string> pieces = all_letters();
  pieces.insert(pieces.end(), {"ab", "abc"});  // no merge leads to abc
  const BpeTokenizer by_merges(Vocabulary(pieces), merges, {}, {}), whole(Vocabulary(pieces), merges, {}, {.ignore_merges = true});
  CHECK(by_merges.encode("abc abcd") == Ids{256, 'c', ' ', 256, 'c', 'd'});
  CHECK(whole.encode("abc abcd") == Ids{257, ' ', 256, 'c', 'd'});
  CHECK(tokenizer_of({}, {}, {.add_prefix_space = true})->encode("a") == Ids{' ', 'a'});
  CHECK(tokenizer_of({}, {}, {.add_prefix_space = true})->encode(" a") == Ids{' ', 'a'});
  CHECK(tokenizer_of({}, {}, {.compose = true})->encode("e\u0301") == Ids{0xc3, 0xa9});
  CHECK(error_of([] { tokenizer_of({}, {}, {.compose = true})->encode("ab\xe9"); }) ==
        "bpe tokenizer: byte 2 (value 0xe9) is not valid UTF-8");
  const BpeTokenizer few(Vocabulary(std::vector<std::string>{"a", "?"}), {}, {}, {.unknown = "?"});
  CHECK(few.encode("aba") == Ids{0, 1, 0});
}

TEST_CASE("bpe tokenizer: added tokens are found first, the longest of them, with the white space they take") {
  const auto tokenizer =
      tokenizer_of({}, {{.id = 256, .content = "<a>"}, {.id = 257, .content = "<a>b"}, {.id = 258, .content = "MM", .single_word = true},
                           {.id = 259, .content = "<l>", .lstrip = true, .rstrip = true}});
  CHECK(tokenizer->vocab_size() == 260);
  CHECK(tokenizer->encode("<a><a>b<a") == Ids{256, 257, '<', 'a'});
  CHECK(tokenizer->encode("MM aMM MM.") == Ids{258, ' ', 'a', 'M', 'M', ' ', 258, '.'});
  CHECK(tokenizer->encode("x \n<l>\t y") == Ids{'x', 259, 'y'});
  CHECK(tokenizer->decode(Ids{'x', 257, 259}) == "x<a>b<l>");
}

// The format of Hugging Face's tokenizers.
TEST_CASE("bpe tokenizer: a merge that is listed twice, words next to an added token, tokens that begin with a blank") {
  // Listed once, l + o is the first merge of "lower"; its second rank comes after o + w.
  const std::vector<std::string> merged = {"lo", "ow"};
  std::vector<std::string> pieces = all_letters();
  pieces.insert(pieces.end(), merged.begin(), merged.end());
  const BpeTokenizer once(Vocabulary(pieces), {{"l", "o"}, {"o", "w"}}, {}, {}),
      twice(Vocabulary(pieces), {{"l", "o"}, {"o", "w"}, {"l", "o"}}, {}, {});
  CHECK(once.encode("low") == Ids{256, 'w'});
  CHECK(twice.encode("low") == Ids{'l', 257});

  const auto words = tokenizer_of({}, {{.id = 256, .content = "low", .single_word = true}, {.id = 257, .content = "ow"}});
  for (const char* alone : {"\u00bd", "\u00b2", "\u2460", ".", " "}) CHECK(words->encode(std::string("low") + alone)[0] == 256);
  for (const char* joined : {"\u0903", "\u200d", "\u203f", "_", "7", "\u0301"}) {
    CAPTURE(joined);
    CHECK(words->encode(std::string("low") + joined)[0] == 'l');
    CHECK(words->encode(std::string("low") + joined)[1] == 'o');  // skipped text is not searched again
  }

  const auto blanks = tokenizer_of({}, {{.id = 256, .content = "<x>", .rstrip = true}, {.id = 257, .content = " <x>"}});
  CHECK(blanks->encode("a <x> <x> b") == Ids{'a', 257, 257, ' ', 'b'});
  CHECK(blanks->encode("<x> <x>  b") == Ids{256, 257, ' ', ' ', 'b'});
  const auto single = tokenizer_of({}, {{.id = 256, .content = "<x>", .rstrip = true}, {.id = 257, .content = "  "}});
  CHECK(single->encode("<x>   b") == Ids{256, 257, ' ', 'b'});
  const auto taken = tokenizer_of({}, {{.id = 256, .content = "<x>", .rstrip = true}, {.id = 257, .content = "  ", .lstrip = true}});
  CHECK(taken->encode("<x>  b") == Ids{256, 'b'});

  const auto passes =
      tokenizer_of({}, {{.id = 256, .content = "<s>"}, {.id = 257, .content = "<s>low", .single_word = true, .normalized = true},
                           {.id = 258, .content = "ow", .single_word = true, .normalized = true}});
  CHECK(passes->encode("<s>low") == Ids{256, 'l', 'o', 'w'});
  CHECK(passes->encode("x<s>ow<s>") == Ids{'x', 256, 258, 256});  // the text next to it is another part
}

TEST_CASE("bpe tokenizer: errors") {
  CHECK(error_of([] { tokenizer_of({{"a", "語"}}); }) == "bpe tokenizer: merge 0 needs the token '語', which is not in the vocabulary");
  CHECK(error_of([] {
    BpeTokenizer(Vocabulary(all_letters()), {{"a", "b"}}, {}, {});
  }) == "bpe tokenizer: merge 0 needs the token 'ab', which is not in the vocabulary");
  CHECK(error_of([] { BpeTokenizer(Vocabulary(std::vector<std::string>{"a"}), {}, {}, {}).encode("ab"); }) ==
        "bpe tokenizer: the vocabulary has no token for byte 1 (value 0x62)");
  CHECK(error_of([] { BpeTokenizer(Vocabulary(std::vector<std::string>{"a"}), {}, {}, {.unknown = "?"}); }) ==
        "bpe tokenizer: the token '?' for unknown bytes is not in the vocabulary");
  CHECK(error_of([] { Vocabulary(std::vector<std::string>{"a", "b", "a"}); }) == "vocabulary: 'a' has two ids, 0 and 2");
  CHECK(error_of([] { tokenizer_of({}, {{.id = 3, .content = "a"}}); }) ==
        "added tokens: 'a' has the id 3, expected 97 as in the vocabulary");
  CHECK(error_of([] { tokenizer_of({}, {{.id = 3, .content = "new"}}); }) == "vocabulary: 'ă' and 'new' have the same id 3");
  CHECK(error_of([] { tokenizer_of({})->decode(Ids{5, 256}); }) == "bpe tokenizer: id 256 at index 1 is outside the vocabulary of 256");
  DecodeState state;
  CHECK(error_of([&] { tokenizer_of({})->decode_next(-1, state); }) == "bpe tokenizer: id -1 is outside the vocabulary of 256");
}

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

TEST_CASE("split: SmolLM's single digits, and GPT-2's words between them") {
  CHECK(words_of("smollm", "a1b22 333 ½") == Words{"a", "1", "b", "2", "2", " ", "3", "3", "3", " ", "½"});
  CHECK(words_of("smollm", "x  1   y  ") == Words{"x", "  ", "1", "  ", " y", "  "});
  CHECK(words_of("smollm", "don't 5's\n7") == Words{"don", "'t", " ", "5", "'s", "\n", "7"});
  CHECK(words_of("smollm", "$5.99\u3000٣ \xff"
                           "1") == Words{"$", "5", ".", "9", "9", "\u3000", "٣", " \xff", "1"});
}

TEST_CASE("split: patterns are known by name and by their text, others are errors") {
  for (const SplitPattern& pattern : split_patterns()) CHECK(&find_pattern_by_regex(pattern.regex) == &find_pattern(pattern.name));
  CHECK(error_of([] { find_pattern("gpt5"); }) == "split pattern: unknown name gpt5, expected one of gpt2, llama3, qwen2, smollm");
  CHECK(error_of([] { find_pattern_by_regex("\\w+"); }) ==
        "split pattern: \\w+ is not known, expected the pattern of gpt2, llama3, qwen2, smollm");
}
