// WordPiece and BERT's treatment of texts.
#include <doctest/doctest.h>

#include "data/tokenizers/words/wordpiece_tokenizer.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

using Ids = std::vector<int64_t>;
using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  Words words;
  for (size_t at = 0, space_end = 0; at < text.size();) {
    const size_t end = bert_word_end(text, at, space_end);
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end > at ? end : space_end;
  }
  return words;
}

const Words kPieces = {"[UNK]", "un", "##aff", "##able", "##a", "!", "i", "do", "n", "'", "t", "##s", "語", "[MASK]", "want"};

WordPieceTokenizer tokenizer_of(WordPieceOptions options = {}, std::vector<AddedToken> added = {{.id = 13, .content = "[MASK]"}}) {
  return WordPieceTokenizer(Vocabulary(kPieces), std::move(added), std::move(options));
}

}  // namespace

TEST_CASE("bert text: control characters go, white space is a blank, Chinese characters stand alone") {
  CHECK(BertText{}.normalize("a\tb\r\nc\u00a0d\u3000e", 0) == "a b  c d e");
  CHECK(BertText{}.normalize(std::string("x\0y\x07\x7f\u200b\ufeff\ufffd\u00adz", 18), 0) == "xyz");
  CHECK(BertText{}.normalize("x中文y", 0) == "x 中  文 y");
  CHECK(BertText{.clean = false, .ideographs = false}.normalize("a\t中", 0) == "a\t中");
  CHECK(BertText{.strip_accents = true, .lowercase = true}.normalize("ÀÉÎ Čšž Ünïcödé İ ΑΣ", 0) == "aei csz unicode i ασ");
  CHECK(BertText{.strip_accents = false, .lowercase = true}.normalize("ÀÉ", 0) == "àé");
  CHECK(BertText{.strip_accents = true, .lowercase = false}.normalize("ÀÉ", 0) == "AE");
  CHECK(error_of([] { BertText{}.normalize("ab\xc3", 10); }) == "wordpiece tokenizer: byte 12 (value 0xc3) is not valid UTF-8");
}

TEST_CASE("bert text: words end at white space and at punctuation, which stands alone") {
  CHECK(words_of("don't  stop... $5 “ok”") == Words{"don", "'", "t", "stop", ".", ".", ".", "$", "5", "“", "ok", "”"});
  CHECK(words_of("  ") == Words{});
  CHECK(words_of("€5 a_b") == Words{"€5", "a", "_", "b"});
}

TEST_CASE("wordpiece tokenizer: the longest piece first, and unknown words as a whole") {
  const WordPieceTokenizer tokenizer = tokenizer_of();
  CHECK(tokenizer.encode("unaffable un unaffa") == Ids{1, 2, 3, 1, 1, 2, 4});
  CHECK(tokenizer.encode("unaffx!") == Ids{0, 5});
  CHECK(tokenizer.encode("x語un") == Ids{0, 12, 1});
  CHECK(tokenizer.encode("a[MASK]un") == Ids{0, 13, 1});
  CHECK(tokenizer.encode("") == Ids{});
  CHECK(tokenizer_of({.longest_word = 4}).encode("unaff want") == Ids{0, 14});
  CHECK(tokenizer_of({.text = {.strip_accents = true, .lowercase = true}}).encode("ÛN") == Ids{1});
}

TEST_CASE("wordpiece tokenizer: blanks between words, at once and as a stream") {
  const WordPieceTokenizer tokenizer = tokenizer_of();
  CHECK(tokenizer.decode(Ids{1, 2, 3, 5, 0, 7, 8, 9, 10, 14}) == "unaffable! [UNK] do n ' t want");
  CHECK(tokenizer_of({.cleanup = false}).decode(Ids{1, 5}) == "un !");
  DecodeState state;
  Words shown;
  for (const int64_t id : {1, 2, 5, 6, 11}) shown.push_back(tokenizer.decode_next(id, state));
  CHECK(shown == Words{"un", "aff", "!", " i", "s"});
  CHECK(tokenizer.decode(Ids{2}) == "##aff");  // there is nothing to go on with
  DecodeState after = tokenizer.state_after(Ids{1});
  CHECK(tokenizer.decode_next(6, after) == " i");
}

TEST_CASE("wordpiece tokenizer: errors") {
  CHECK(error_of([] { WordPieceTokenizer(Vocabulary(Words{"a"}), {}, {}); }) ==
        "wordpiece tokenizer: '[UNK]', for unknown words, is not in the vocabulary");
  CHECK(error_of([] { tokenizer_of({.prefix = ""}); }) == "wordpiece tokenizer: the prefix of pieces that go on with a word is empty");
  CHECK(error_of([] { tokenizer_of({.longest_word = 0}); }) == "wordpiece tokenizer: words of 0 characters, expected 1 to 1000");
  CHECK(error_of([] { tokenizer_of().encode("un\xe9"); }) == "wordpiece tokenizer: byte 2 (value 0xe9) is not valid UTF-8");
}
