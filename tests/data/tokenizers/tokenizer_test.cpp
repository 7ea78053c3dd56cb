// UTF-8 and Unicode against the tables and examples of the standard; character, byte, word and WordPiece ids, and <eos> after lines and
// documents; error texts.
#include "data/tokenizers/tokenizer.h"

#include <doctest/doctest.h>

#include <set>

#include "data/text/utf8.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/unicode.h"
#include "data/tokenizers/words.h"
#include "tests/bounded.h"
#include "tests/data/files.h"
#include "tests/data/shards/shard_files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

using Ids = std::vector<int64_t>;

std::shared_ptr<const Tokenizer> words() {
  return std::make_shared<WordTokenizer>(Vocabulary(std::vector<std::string>{"<unk>", "the", "cat", "<eos>"}), std::vector<AddedToken>());
}

Ids with_end(const Tokenizer& tokenizer, const std::string& text) {
  Ids ids = tokenizer.encode(text);
  tokenizer.append_end(text, ids);
  return ids;
}

using Words = std::vector<std::string>;

Words bert_words(const std::string& text) {
  Words words;
  size_t position = 0;
  for (std::string_view word = next_bert_word(text, position); !word.empty(); word = next_bert_word(text, position))
    words.emplace_back(word);
  return words;
}

const Words kPieces = {"[UNK]", "un", "##aff", "##able", "##a", "!", "i", "do", "n", "'", "t", "##s", "語", "[MASK]", "want"};

WordPieceTokenizer wordpiece(WordPieceOptions options = {}, std::vector<AddedToken> added = {{.id = 13, .content = "[MASK]"}}) {
  return WordPieceTokenizer(Vocabulary(kPieces), std::move(added), std::move(options));
}

uint8_t class_of(char32_t code) { return unicode_classes()[code]; }

std::string lower(char32_t code) {
  std::string text;
  append_lower_case(code, text);
  return text;
}

}  // namespace

TEST_CASE("utf8: every code point survives, and nothing else is accepted") {
  for (char32_t code = 0; code <= kLargestCodePoint; ++code) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    std::string text;
    append_utf8(code, text);
    const Utf8Character back = decode_utf8(text, 0);
    if (back.code != code || back.bytes != text.size()) FAIL("code point " << static_cast<uint32_t>(code));
  }
  int64_t accepted = 0;  // among all sequences of two and three bytes that do not start with an ASCII byte
  for (int a = 0x80; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      const char two[] = {static_cast<char>(a), static_cast<char>(b)};
      accepted += decode_utf8({two, 2}, 0).bytes == 2;
      for (int c = 0; c < 256; ++c) {
        const char three[] = {two[0], two[1], static_cast<char>(c)};
        accepted += decode_utf8({three, 3}, 0).bytes == 3;
      }
    }
  CHECK(accepted == (0x800 - 0x80) + (0x10000 - 0x800 - 0x800));
  for (const char* wrong :
      {"\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x9d\x84", "\xf0\x9d\x84x"})
    CHECK(decode_utf8(wrong, 0).bytes == 0);
}

TEST_CASE("utf8: cutting, counting, describing") {
  const std::string text = "aé€𝄞";  // 1 + 2 + 3 + 4 bytes
  const size_t complete[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (size_t bytes = 0; bytes <= text.size(); ++bytes) CHECK(complete_utf8_prefix(text.substr(0, bytes)) == complete[bytes]);
  CHECK(complete_utf8_prefix("\x80\x80\x80\x80") == 4);  // not UTF-8, and more bytes cannot repair it
  CHECK(count_characters(text) == 4);
  CHECK(count_characters("") == 0);
  CHECK(describe_character(U'é') == "'é' (U+00E9)");
  CHECK(describe_character(U'\n') == "U+000A");
  CHECK(describe_character(0x1d11e) == "'𝄞' (U+1D11E)");
}

TEST_CASE("char tokenizer: ids are ranks in the sorted set of characters") {
  const ScratchFolder folder;
  const std::string text = "hé\nworld 語 𝄞😀" + mixed_text(100'000, 6);
  const auto made = characters_of({TextSource(write_compressed(folder, "t.zst", text, ARCHIVE_FILTER_ZSTD))});
  const Tokenizer& tokenizer = *made;
  std::set<char32_t> sorted;
  std::vector<char32_t> codes;
  for (size_t at = 0; at < text.size(); at += decode_utf8(text, at).bytes) codes.push_back(decode_utf8(text, at).code);
  sorted.insert(codes.begin(), codes.end());
  CHECK(tokenizer.vocab_size() == static_cast<int64_t>(sorted.size()));
  const std::vector<int64_t> ids = tokenizer.encode(text);
  REQUIRE(ids.size() == codes.size());
  int64_t wrong = 0;
  for (size_t i = 0; i < ids.size(); ++i) wrong += ids[i] != std::distance(sorted.begin(), sorted.find(codes[i]));
  CHECK(wrong == 0);
  CHECK(tokenizer.decode(ids) == text);
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.decode({}) == "");
}

TEST_CASE("char tokenizer: text outside the vocabulary is an error") {
  const CharTokenizer tokenizer("\nabé");
  CHECK(tokenizer.encode("béa\n") == std::vector<int64_t>{2, 3, 1, 0});
  CHECK(error_of([&] { tokenizer.encode("aéc"); }) ==
        "char tokenizer: 'c' (U+0063) at byte 3 is not among the 4 characters of the vocabulary");
  CHECK(error_of([&] { tokenizer.encode("ab語"); }) ==
        "char tokenizer: '語' (U+8A9E) at byte 2 is not among the 4 characters of the vocabulary");
  CHECK(error_of([&] { tokenizer.encode("a\tb"); }) == "char tokenizer: U+0009 at byte 1 is not among the 4 characters of the vocabulary");
  CHECK(error_of([&] { tokenizer.encode("ab\xe9"); }) == "char tokenizer: byte 2 (value 0xe9) is not valid UTF-8");
  CHECK(error_of([&] { tokenizer.encode("é\xc3"); }) == "char tokenizer: byte 2 (value 0xc3) is not valid UTF-8");
  const std::vector<int64_t> ids = {0, 3, 4};
  CHECK(error_of([&] { tokenizer.decode(ids); }) == "char tokenizer: id 4 at index 2 is outside the vocabulary of 4");
  const std::vector<int64_t> negative = {-1};
  CHECK(error_of([&] { tokenizer.decode(negative); }) == "char tokenizer: id -1 at index 0 is outside the vocabulary of 4");
  CHECK(error_of([] { CharTokenizer(""); }) == "char tokenizer: the vocabulary is empty");
  CHECK(error_of([] { CharTokenizer("aba"); }) == "char tokenizer: the vocabulary has a duplicate 'a' (U+0061)");
}

TEST_CASE("char tokenizer: a text that is not UTF-8 names the byte, in the middle and at the end") {
  const ScratchFolder folder;
  const std::string good = mixed_text(300'000, 7);
  const std::string size = std::to_string(good.size());
  const TextSource middle = TextSource(folder.write("middle", good + "\xe9" + good)).read_as(Encoding::bytes);
  CHECK(error_of([&] { characters_of({middle}); }) ==
        "middle: char tokenizer: byte " + size + " (value 0xe9) is not valid UTF-8; tokenizer=byte reads any bytes");
  const TextSource end = TextSource(folder.write("end", good + "\xf0\x9d\x84")).read_as(Encoding::bytes);
  CHECK(error_of([&] { characters_of({end}); }) ==
        "end: char tokenizer: byte " + size + " (value 0xf0) is not valid UTF-8; tokenizer=byte reads any bytes");
}

TEST_CASE("byte tokenizer: ids are bytes, every text survives") {
  const ByteTokenizer tokenizer;
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::vector<int64_t> ids = tokenizer.encode(all);
  for (int64_t byte = 0; byte < 256; ++byte) CHECK(ids[static_cast<size_t>(byte)] == byte);
  CHECK(tokenizer.decode(ids) == all);
  CHECK(tokenizer.vocab_size() == 256);
  const std::vector<int64_t> outside = {256};
  CHECK(error_of([&] { tokenizer.decode(outside); }) == "byte tokenizer: id 256 at index 0 is outside the vocabulary of 256");
}

TEST_CASE("tokenizer: the tokens that two vocabularies write alike, each once") {
  const CharTokenizer a("abc"), b("bcd");
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  CHECK(match_tokens(a, b) == Pairs{{1, 0}, {2, 1}});
  CHECK(match_tokens(b, a) == Pairs{{0, 1}, {1, 2}});
  CHECK(match_tokens(a, CharTokenizer("xyz")).empty());
  const ByteTokenizer bytes;
  CHECK(match_tokens(bytes, a) == Pairs{{'a', 0}, {'b', 1}, {'c', 2}});
  const auto words = std::make_shared<WordTokenizer>(Vocabulary(Words{"<unk>", "b", "<eos>", "\n"}), std::vector<AddedToken>());
  CHECK(match_tokens(*words, bytes) == Pairs{{3, '\n'}, {1, 'b'}});
  CHECK(match_tokens(*with_eos(words, Eos::line, "<eos>"), bytes) == Pairs{{1, 'b'}});  // two tokens end a line
}

TEST_CASE("char tokenizer: the vocabulary of tinyshakespeare" * doctest::test_suite("needs tinyshakespeare")) {
  const std::string path = corpus("tinyshakespeare/input.txt");
  if (path.empty()) return test::skip("needs tinyshakespeare/input.txt under $RICCI_DATA");
  const auto made = characters_of({TextSource(path)});
  const Tokenizer& tokenizer = *made;
  CHECK(tokenizer.vocab_size() == 65);
  std::vector<int64_t> ids(65);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  CHECK(tokenizer.decode(ids) == "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
  CHECK(tokenizer.encode("First Citizen:") == std::vector<int64_t>{18, 47, 56, 57, 58, 1, 15, 47, 58, 47, 64, 43, 52, 10});
}

TEST_CASE("word tokenizer: strings between white space") {
  CHECK(words()->encode(" the  cat\tsat\u3000the\ncat") == Ids{1, 2, 0, 1, 2});
  CHECK(words()->decode(Ids{1, 2, 0}) == "the cat <unk>");
  CHECK(words()->encode("thecat <unk>") == Ids{0, 0});
  CHECK(error_of([] { words()->encode("the \xff"); }) == "word tokenizer: byte 4 (value 0xff) is not valid UTF-8");
  CHECK(error_of([] { WordTokenizer(Vocabulary(std::vector<std::string>{"a"}), {}); }) ==
        "word tokenizer: the token '<unk>' for unknown words is not in the vocabulary");
}

TEST_CASE("eos: behind every line") {
  const auto ended = with_eos(words(), Eos::line, "<eos>");
  const Tokenizer& tokenizer = *ended;
  CHECK(tokenizer.encode("the cat\n\nthe\n") == Ids{1, 2, 3, 3, 1, 3});
  CHECK(tokenizer.encode("the cat\nthe") == Ids{1, 2, 3, 1});  // a prompt's last line continues
  CHECK(with_end(tokenizer, "the cat\nthe") == Ids{1, 2, 3, 1, 3});
  CHECK(with_end(tokenizer, "the\n") == Ids{1, 3});
  CHECK(with_end(tokenizer, "") == Ids{});
  CHECK(tokenizer.decode(Ids{1, 2, 3, 1, 3}) == "the cat\nthe\n");
  CHECK(tokenizer.complete_prefix("the cat\nthe ca") == 8);
  CHECK(tokenizer.vocab_size() == 4);
  CHECK(tokenizer.marks().ends.empty());
  CHECK(end_of_text(tokenizer).empty());
}

TEST_CASE("eos: behind every document") {
  const auto ended = with_eos(words(), Eos::document, "<eos>");
  const Tokenizer& tokenizer = *ended;
  CHECK(tokenizer.encode("the\ncat\n") == Ids{1, 2});
  CHECK(with_end(tokenizer, "the\ncat\n") == Ids{1, 2, 3});
  CHECK(with_end(tokenizer, "") == Ids{3});
  CHECK(tokenizer.decode(Ids{1, 3, 2}) == "the <eos> cat");
  // A format of older runs.
  const auto stored = tokenizer_from_json(R"({"name":"eos","behind":"document","piece":"<eos>","tokenizer":)" + words()->to_json() + "}");
  CHECK(stored->hash() == tokenizer.hash());
  CHECK(stored->marks().ends == Ids{3});
  CHECK(stored->encode("the <eos>") == Ids{1, 3});  // a word of this vocabulary
}

TEST_CASE("eos: characters have an end that no text has") {
  const auto plain = std::make_shared<CharTokenizer>("<>eos"), ended = std::make_shared<CharTokenizer>("<>eos", "<eos>");
  const auto tokenizer = with_eos(plain, Eos::document);
  CHECK(plain->to_json() == R"({"characters":"<>eos","name":"char"})");
  CHECK(tokenizer->to_json() ==
        R"({"name":"eos","behind":"document","piece":"<eos>","tokenizer":{"characters":"<>eos","end":"<eos>","name":"char"}})");
  CHECK(tokenizer->vocab_size() == 6);
  CHECK(with_end(*tokenizer, "<eos>") == Ids{0, 2, 3, 4, 1, 5});
  CHECK(tokenizer->decode(Ids{0, 1, 5, 2}) == "<><eos>e");
  CHECK(tokenizer->marks().ends == Ids{5});
  CHECK(ended->encode("<eos>") == plain->encode("<eos>"));
  CHECK(tokenizer_from_json(tokenizer->to_json())->hash() == tokenizer->hash());
  CHECK(with_eos(plain, Eos::line)->encode("e\ns\n") == Ids{2, 5, 4, 5});
  CHECK(error_of([&] { with_eos(ended, Eos::document, "<end>"); }) == "char tokenizer: no token can be added to its vocabulary");
}

TEST_CASE("eos: a tokenizer's own end of text, by its marks or by its name") {
  const auto of_words = [](const std::string& word) {
    return std::make_shared<WordTokenizer>(Vocabulary(std::vector<std::string>{"<unk>", word}), std::vector<AddedToken>());
  };
  for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "<eos>", "</s>"}) {
    const auto tokenizer = of_words(name);
    CHECK(end_of_text(*tokenizer) == name);
    CHECK(with_end(*with_own_eos(tokenizer), "x") == Ids{0, 1});
    CHECK(with_eos(tokenizer, Eos::document)->vocab_size() == 2);
    CHECK(with_eos(tokenizer, Eos::line)->vocab_size() == (std::string(name) == "<eos>" ? 2 : 3));
  }
  CHECK(with_own_eos(of_words("[SEP]"))->to_json() == of_words("[SEP]")->to_json());
  const std::vector<AddedToken> added = {{.id = 2, .content = "<stop>", .eos = true}};
  const auto marked = std::make_shared<WordTokenizer>(Vocabulary(std::vector<std::string>{"<unk>", "<|endoftext|>", "<stop>"}), added);
  CHECK(with_end(*with_own_eos(marked), "x") == Ids{0, 2});
  CHECK(with_eos(marked, Eos::document, "<|endoftext|>")->marks().ends == Ids{1, 2});
  const auto once = with_eos(marked, Eos::document);
  CHECK(with_own_eos(once) == once);
  CHECK(with_eos(once, Eos::document) == once);
  CHECK(once->model_json() == marked->json());
}

TEST_CASE("eos: a vocabulary without the piece gets it, a tokenizer without written pieces cannot") {
  const auto tokenizer = with_eos(words(), Eos::line, "</s>");
  CHECK(tokenizer->vocab_size() == 5);
  CHECK(tokenizer->encode("cat\n") == Ids{2, 4});
  CHECK(with_eos(words(), Eos::none, "</s>")->vocab_size() == 4);
  CHECK(tokenizer_from_json(tokenizer->to_json())->encode("cat\n</s>") == Ids{2, 4, 4});
  CHECK(tokenizer_from_json(tokenizer->to_json())->hash() == tokenizer->hash());
  CHECK(tokenizer->hash() != words()->hash());
  CHECK(error_of([] { with_eos(std::make_shared<ByteTokenizer>(), Eos::line, "<eos>"); }) ==
        "byte tokenizer: no token can be added to its vocabulary");
  const auto nested = [](const std::string& json, const std::string& after, const std::string& piece) {
    return R"({"name":"eos","behind":")" + after + R"(","piece":")" + piece + R"(","tokenizer":)" + json + "}";
  };
  const auto fault = [](const std::string& json) { return error_of([&] { tokenizer_from_json(json); }); };
  CHECK(
      fault(nested(words()->to_json(), "line", "<end>")) == "word tokenizer: the vocabulary has no token '<end>' to put after every line");
  CHECK(fault(nested(words()->to_json(), "none", "<eos>")) == "eos: 'none', expected 'line' or 'document'");
  const std::string other_end = "word tokenizer: already adds '</s>' after every line; it cannot add a second end token";
  CHECK(fault(nested(tokenizer->to_json(), "document", "<eos>")) == other_end);
  CHECK(error_of([&] { with_eos(tokenizer, Eos::document); }) == other_end);
}

TEST_CASE("bert text: control characters go, white space is a blank, Chinese characters are words") {
  CHECK(BertText{}.normalize("a\tb\r\nc\u00a0d\u3000e", 0) == "a b  c d e");
  CHECK(BertText{}.normalize(std::string("x\0y\x07\x7f\u200b\ufeff\ufffd\u00adz", 18), 0) == "xyz");
  CHECK(BertText{}.normalize("x中文y", 0) == "x 中  文 y");
  CHECK(BertText{.clean = false, .ideographs = false}.normalize("a\t中", 0) == "a\t中");
  CHECK(BertText{.strip_accents = true, .lowercase = true}.normalize("ÀÉÎ Čšž Ünïcödé İ ΑΣ", 0) == "aei csz unicode i ασ");
  CHECK(BertText{.strip_accents = false, .lowercase = true}.normalize("ÀÉ", 0) == "àé");
  CHECK(BertText{.strip_accents = true, .lowercase = false}.normalize("ÀÉ", 0) == "AE");
  CHECK(error_of([] { BertText{}.normalize("ab\xc3", 10); }) == "wordpiece tokenizer: byte 12 (value 0xc3) is not valid UTF-8");
}

TEST_CASE("bert text: words end at white space and at punctuation, and each sign is a word") {
  CHECK(bert_words("don't  stop... $5 “ok”") == Words{"don", "'", "t", "stop", ".", ".", ".", "$", "5", "“", "ok", "”"});
  CHECK(bert_words("  ") == Words{});
  CHECK(bert_words("€5 a_b") == Words{"€5", "a", "_", "b"});
}

TEST_CASE("wordpiece tokenizer: the longest piece first, and unknown words as a whole") {
  const WordPieceTokenizer tokenizer = wordpiece();
  CHECK(tokenizer.encode("unaffable un unaffa") == Ids{1, 2, 3, 1, 1, 2, 4});
  CHECK(tokenizer.encode("unaffx!") == Ids{0, 5});
  CHECK(tokenizer.encode("x語un") == Ids{0, 12, 1});
  CHECK(tokenizer.encode("a[MASK]un") == Ids{0, 13, 1});
  CHECK(tokenizer.encode("") == Ids{});
  CHECK(wordpiece({.longest_word = 4}).encode("unaff want") == Ids{0, 14});
  CHECK(wordpiece({.text = {.strip_accents = true, .lowercase = true}}).encode("ÛN") == Ids{1});
}

TEST_CASE("wordpiece tokenizer: blanks between words, at once and as a stream") {
  const WordPieceTokenizer tokenizer = wordpiece();
  CHECK(tokenizer.decode(Ids{1, 2, 3, 5, 0, 7, 8, 9, 10, 14}) == "unaffable! [UNK] do n ' t want");
  CHECK(wordpiece({.cleanup = false}).decode(Ids{1, 5}) == "un !");
  DecodeState state;
  Words shown;
  for (const int64_t id : {1, 2, 5, 6, 11}) shown.push_back(tokenizer.decode_next(id, state));
  CHECK(shown == Words{"un", "aff", "!", " i", "s"});
  CHECK(tokenizer.decode(Ids{2}) == "##aff");  // nothing can continue it
  DecodeState after = tokenizer.state_after(Ids{1});
  CHECK(tokenizer.decode_next(6, after) == " i");
}

TEST_CASE("wordpiece tokenizer: errors") {
  CHECK(error_of([] { WordPieceTokenizer(Vocabulary(Words{"a"}), {}, {}); }) ==
        "wordpiece tokenizer: the token '[UNK]' for unknown words is not in the vocabulary");
  CHECK(error_of([] { wordpiece({.prefix = ""}); }) == "wordpiece tokenizer: the prefix of tokens that continue a word is empty");
  CHECK(error_of([] { wordpiece({.longest_word = 0}); }) == "wordpiece tokenizer: the longest word has 0 characters, expected 1 to 1000");
  CHECK(error_of([] { wordpiece().encode("un\xe9"); }) == "wordpiece tokenizer: byte 2 (value 0xe9) is not valid UTF-8");
}

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
  for (const char32_t code : {U'€', U'±', U'😀', U'\u0378', U'\U0010ffff'}) CHECK(class_of(code) == 0);  // signs, and unassigned characters
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

TEST_CASE("utf8: invalid bytes are replaced as the Unicode standard recommends") {
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
