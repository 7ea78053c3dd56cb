// UTF-8 against the standard's tables, character and byte ids against sets and loops, errors by text.
#include "data/tokenizers/tokenizer.h"

#include <doctest/doctest.h>

#include <set>

#include "data/text/utf8.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/bounded.h"
#include "tests/data/files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

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
  CHECK(complete_utf8_prefix("\x80\x80\x80\x80") == 4);  // not UTF-8, and more bytes cannot mend it
  CHECK(count_characters(text) == 4);
  CHECK(count_characters("") == 0);
  CHECK(describe_character(U'é') == "'é' (U+00E9)");
  CHECK(describe_character(U'\n') == "U+000A");
  CHECK(describe_character(0x1d11e) == "'𝄞' (U+1D11E)");
}

TEST_CASE("char tokenizer: ids are ranks in the sorted set of characters") {
  const ScratchFolder folder;
  const std::string text = "hé\nworld 語 𝄞😀" + mixed_text(300'000, 6);
  const auto tokenizer = CharTokenizer::of_text(TextSource(write_compressed(folder, "t.zst", text, ARCHIVE_FILTER_ZSTD)));
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

TEST_CASE("char tokenizer: what the vocabulary cannot say is an error") {
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
  CHECK(error_of([] { CharTokenizer("aba"); }) == "char tokenizer: 'a' (U+0061) is twice in the vocabulary");
}

TEST_CASE("char tokenizer: a text that is not UTF-8 names the byte, in the middle and at the end") {
  const ScratchFolder folder;
  const std::string good = mixed_text(300'000, 7);
  const std::string size = std::to_string(good.size());
  const TextSource middle(folder.write("middle", good + "\xe9" + good));
  CHECK(error_of([&] { CharTokenizer::of_text(middle); }) ==
        "middle: char tokenizer: byte " + size + " (value 0xe9) is not valid UTF-8; tokenizer: byte reads any bytes");
  const TextSource end(folder.write("end", good + "\xf0\x9d\x84"));
  CHECK(error_of([&] { CharTokenizer::of_text(end); }) ==
        "end: char tokenizer: byte " + size + " (value 0xf0) is not valid UTF-8; tokenizer: byte reads any bytes");
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

TEST_CASE("tokenizer: JSON brings back the same tokenizer") {
  const CharTokenizer original("z\n\"\\aé語𝄞");  // ids in the order given
  const auto back = tokenizer_from_json(original.to_json());
  CHECK(back->name() == "char");
  CHECK(back->encode("zé\n\"\\") == std::vector<int64_t>{0, 5, 1, 2, 3});
  CHECK(back->hash() == original.hash());
  CHECK(back->hash() != CharTokenizer("z").hash());
  CHECK(tokenizer_from_json(ByteTokenizer().to_json())->vocab_size() == 256);
  CHECK(test::bounded_error([] { tokenizer_from_json("{"); }) == "tokenizer: not JSON: fault at byte 2 of 1");
  CHECK(test::bounded_error([] { tokenizer_from_json("[1]"); }) ==
        "tokenizer: the JSON has neither a \"model\", as Hugging Face's have, nor a text \"name\"");
  CHECK(test::bounded_error([] { tokenizer_from_json(R"({"name":"char","characters":3})"); }) ==
        "tokenizer: the JSON has no text \"characters\"");
  CHECK(test::bounded_error([] { tokenizer_from_json(R"({"name":"morse"})"); }) ==
        "tokenizer: unknown name morse, known are byte, char and eos");
  CHECK(test::bounded_error([] { tokenizer_from_json(std::string(100'000, '[')); }) ==
        "tokenizer: the JSON is nested 100000 levels deep, at most 16 are read");
  CHECK(test::bounded_error([] { tokenizer_from_json(R"({"name":")" + std::string(100'000, 'n') + "\"}"); }) ==
        "tokenizer: unknown name " + std::string(57, 'n') + "..., known are byte, char and eos");
  CHECK(test::bounded_error([] { tokenizer_from_json(R"({"name":"a\nb"})"); }) ==
        "tokenizer: unknown name a b, known are byte, char and eos");
  CHECK(test::bounded_error([] { tokenizer_from_json(std::string((64 << 20) + 1, ' ')); }) ==
        "tokenizer: 67108865 bytes, at most 67108864 are read");
  CHECK(test::bounded_error([] { tokenizer_from_json(R"({"name":"char","characters":")" + std::string(5'000'000, 'a') + "\"}"); }) ==
        "char tokenizer: 'a' (U+0061) is twice in the vocabulary");
}

TEST_CASE("char tokenizer: the vocabulary of tinyshakespeare" * doctest::test_suite("needs tinyshakespeare")) {
  const std::string path = corpus("tinyshakespeare/input.txt");
  if (path.empty()) return test::skip("needs tinyshakespeare/input.txt under $RICCI_DATA");
  const CharTokenizer tokenizer = CharTokenizer::of_text(TextSource(path));
  CHECK(tokenizer.vocab_size() == 65);
  std::vector<int64_t> ids(65);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  CHECK(tokenizer.decode(ids) == "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
  CHECK(tokenizer.encode("First Citizen:") == std::vector<int64_t>{18, 47, 56, 57, 58, 1, 15, 47, 58, 47, 64, 43, 52, 10});
}
