// Words, and <eos> behind lines and documents.
#include <doctest/doctest.h>

#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/eos_tokenizer.h"
#include "data/tokenizers/words/word_tokenizer.h"
#include "tests/data/files.h"

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

}  // namespace

TEST_CASE("word tokenizer: what white space divides") {
  CHECK(words()->encode(" the  cat\tsat\u3000the\ncat") == Ids{1, 2, 0, 1, 2});
  CHECK(words()->decode(Ids{1, 2, 0}) == "the cat <unk>");
  CHECK(words()->encode("thecat <unk>") == Ids{0, 0});
  CHECK(error_of([] { words()->encode("the \xff"); }) == "word tokenizer: byte 4 (value 0xff) is not valid UTF-8");
  CHECK(error_of([] { WordTokenizer(Vocabulary(std::vector<std::string>{"a"}), {}); }) ==
        "word tokenizer: '<unk>', for unknown words, is not in the vocabulary");
}

TEST_CASE("eos: behind every line") {
  const EosTokenizer tokenizer(words(), Eos::line, "<eos>");
  CHECK(tokenizer.encode("the cat\n\nthe\n") == Ids{1, 2, 3, 3, 1, 3});
  CHECK(tokenizer.encode("the cat\nthe") == Ids{1, 2, 3, 1});  // a prompt's last line goes on
  CHECK(with_end(tokenizer, "the cat\nthe") == Ids{1, 2, 3, 1, 3});
  CHECK(with_end(tokenizer, "the\n") == Ids{1, 3});
  CHECK(with_end(tokenizer, "") == Ids{});
  CHECK(tokenizer.decode(Ids{1, 2, 3, 1, 3}) == "the cat\nthe\n");
  CHECK(tokenizer.complete_prefix("the cat\nthe ca") == 8);
  CHECK(tokenizer.vocab_size() == 4);
}

TEST_CASE("eos: behind every document") {
  const EosTokenizer tokenizer(words(), Eos::document, "<eos>");
  CHECK(tokenizer.encode("the\ncat\n") == Ids{1, 2});
  CHECK(with_end(tokenizer, "the\ncat\n") == Ids{1, 2, 3});
  CHECK(with_end(tokenizer, "") == Ids{3});
  CHECK(tokenizer.decode(Ids{1, 3, 2}) == "the <eos> cat");
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
        "byte tokenizer: no piece can be added to its vocabulary");
  CHECK(error_of([] { EosTokenizer(words(), Eos::line, "<end>"); }) ==
        "word tokenizer: its vocabulary has no piece '<end>' to put after every line");
}
