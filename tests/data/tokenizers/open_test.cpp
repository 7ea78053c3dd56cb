// Tokenizers from the files that they are published in.
#include <doctest/doctest.h>

#include "core/json/value.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/words/word_tokenizer.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

using Ids = std::vector<int64_t>;

std::string vocabulary_json() {
  std::string json = "{";
  for (int byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    json += quoted_json(bytes_to_letters({&letter, 1})) + ": " + std::to_string(byte) + ", ";
  }
  return json + R"("ab": 256, "Ġab": 257})";
}

}  // namespace

TEST_CASE("opening: merges with their vocabulary, under both pairs of names") {
  const ScratchFolder folder;
  for (const auto& [merges, vocabulary] :
      {std::pair{"gpt2/vocab.bpe", "gpt2/encoder.json"}, {"other/merges.txt", "other/vocab.json"}, {"my-merges.txt", "my-vocab.json"}}) {
    folder.write(merges, "#version: 0.2\r\na b\r\n\nĠ ab");
    folder.write(vocabulary, vocabulary_json());
    const auto tokenizer = open_tokenizer(folder / merges);
    CHECK(tokenizer->encode("ab ab") == Ids{256, 257});
    CHECK(open_tokenizer(folder / vocabulary)->hash() == tokenizer->hash());
  }
  CHECK(open_tokenizer(folder / "gpt2")->vocab_size() == 258);
}

TEST_CASE("opening: vocab.txt, cased and uncased") {
  const ScratchFolder folder;
  const std::string path = folder.write("bert-vocab.txt", "[PAD]\r\n[UNK]\r\n[MASK]\r\ne\r\nÉ\r\n##s\r\n");
  CHECK(open_tokenizer(path)->encode("És E [MASK]") == Ids{4, 5, 1, 2});
  CHECK(open_tokenizer(path, {.lowercase = true})->encode("És E [MASK]") == Ids{3, 5, 3, 2});
  CHECK(open_tokenizer(path)->vocab_size() == 6);
}

TEST_CASE("opening: a tokenizer.json, and a folder with one") {
  const ScratchFolder folder;
  const WordTokenizer words(Vocabulary(std::vector<std::string>{"<unk>", "a"}), {});
  folder.write("run/tokenizer.json", words.to_json());
  CHECK(open_tokenizer(folder / "run")->hash() == words.hash());
  CHECK(open_tokenizer(folder / "run/tokenizer.json")->encode("a b") == Ids{1, 0});
}

TEST_CASE("opening: errors name the file") {
  const ScratchFolder folder;
  const std::string merges = folder.write("vocab.bpe", "a b\n");
  CHECK(error_of([&] { open_tokenizer(merges); }) == merges + ": there is no encoder.json or vocab.json beside it");
  folder.write("encoder.json", "{\"a\": 0, \"b\": 1}");
  CHECK(error_of([&] { open_tokenizer(merges); }) ==
        merges + ": bpe tokenizer: merge 0 needs the piece 'ab', which is not in the vocabulary");
  folder.write("encoder.json", "{\"a\": 0, \"b\": 1, \"ab\": 1.5}");
  CHECK(error_of([&] { open_tokenizer(merges); }) == folder / "encoder.json" + ": vocabulary: the id of 'ab' is not an integer");
  folder.write("vocab.bpe", "#version\na  b\n");
  folder.write("encoder.json", "{\"a\": 0}");
  CHECK(error_of([&] { open_tokenizer(merges); }) == merges + ": line 2: expected two pieces with a blank between them, got 'a  b'");
  const std::string plain = folder.write("vocab.txt", "[UNK]\na\na\n");
  CHECK(error_of([&] { open_tokenizer(plain); }) == plain + ": vocabulary: 'a' has the ids 1 and 2");
  folder.write("vocab.txt", "a\nb\n");
  CHECK(error_of([&] { open_tokenizer(plain); }) == plain + ": wordpiece tokenizer: '[UNK]', for unknown words, is not in the vocabulary");
  folder.write("vocab.txt", "[UNK]\n\xe9\n");
  CHECK(error_of([&] { open_tokenizer(plain); }) == plain + ": vocabulary: byte 6 (value 0xe9) is not valid UTF-8");
  const std::string other = folder.write("notes.txt", "");
  CHECK(error_of([&] { open_tokenizer(other); }) ==
        other + ": not a tokenizer file; these are tokenizer.json, vocab.bpe, *merges.txt and *vocab.txt");
  const std::string json = folder.write("tokenizer.json", R"({"model":{"type":"Unigram","vocab":[]}})");
  CHECK(error_of([&] { open_tokenizer(json); }) ==
        json + ": tokenizer.json: the model 'Unigram' is not supported, supported are BPE, WordPiece and WordLevel");
  CHECK(error_of([&] { open_tokenizer(json, {.lowercase = true}); }) ==
        json + ": lower case is for a vocab.txt; other files define themselves what becomes of a text");
  folder.write("empty/readme", "");
  CHECK(error_of([&] { open_tokenizer(folder / "empty"); }) ==
        folder / "empty" + ": there is no tokenizer.json, vocab.bpe, merges.txt or vocab.txt in this folder");
  CHECK(contains(error_of([&] { open_tokenizer(folder / "gone.json"); }), "gone.json: No such file"));
}
