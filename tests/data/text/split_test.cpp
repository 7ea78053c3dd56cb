// The cut against counting characters one by one, and the published sizes of a real corpus.
#include "data/text/split.h"

#include <doctest/doctest.h>

#include <cmath>

#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/utf8.h"
#include "data/tokens/token_file.h"
#include "tests/data/files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

std::string read_all(const TextSource& source) {
  std::string text;
  TextStream stream(source);
  for (std::string_view block = stream.next(); !block.empty(); block = stream.next()) text += block;
  return text;
}

// The first characters of a UTF-8 text.
std::string first_characters(const std::string& text, int64_t count) {
  size_t at = 0;
  for (int64_t i = 0; i < count; ++i) at += decode_utf8(text, at).bytes;
  return text.substr(0, at);
}

}  // namespace

TEST_CASE("split: the first floor(fraction * characters) characters train, the rest validates") {
  const ScratchFolder folder;
  for (const int64_t characters : {2, 3, 10, 11, 1000, 300'001}) {
    const std::string text = mixed_text(static_cast<size_t>(characters), 21 + static_cast<uint64_t>(characters));
    const TextSource source(write_compressed(folder, "a.zst", text, ARCHIVE_FILTER_ZSTD));
    for (const double fraction : {0.5, 0.9, 0.95}) {
      const auto expected = static_cast<int64_t>(std::floor(static_cast<double>(characters) * fraction));
      if (expected == 0 || expected == characters) continue;
      CAPTURE(characters);
      CAPTURE(fraction);
      const Split split = split_by_characters(source, fraction);
      const std::string train = first_characters(text, expected);
      CHECK(read_all(split.train) == train);
      CHECK(read_all(split.validation) == text.substr(train.size()));
    }
  }
}

TEST_CASE("split: a text that is not UTF-8 is cut by its bytes") {
  const ScratchFolder folder;
  const Split split = split_by_characters(TextSource(folder.write("latin", "caf\xe9 cr\xe8me!")), 0.5);
  CHECK(read_all(split.train) == "caf\xe9 ");
  CHECK(read_all(split.validation) == "cr\xe8me!");
}

TEST_CASE("split: errors") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", "é"));
  CHECK(error_of([&] { split_by_characters(source, 0.9); }) == "split: a.txt has 1 characters, too few for a training fraction of 0.9");
  for (const double fraction : {0.0, 1.0, -0.5, 1.5, std::nan("")})
    CHECK(contains(error_of([&] { split_by_characters(source, fraction); }), "expected more than 0 and less than 1"));
  CHECK(error_of([&] { split_by_characters(source, 1.5); }) == "split: the training fraction is 1.5, expected more than 0 and less than 1");
}

TEST_CASE("split: tinyshakespeare as nanoGPT cuts it" * doctest::test_suite("needs tinyshakespeare")) {
  const std::string path = corpus("tinyshakespeare/input.txt");
  if (path.empty()) return test::skip("needs tinyshakespeare/input.txt under $RICCI_DATA");
  const ScratchFolder folder;
  const TextSource text(path);
  const CharTokenizer tokenizer = CharTokenizer::of_text(text);
  const Split split = split_by_characters(text);
  const TokenFile train = TokenFile::open(split.train, tokenizer, folder / "cache");
  const TokenFile validation = TokenFile::open(split.validation, tokenizer, folder / "cache");
  CHECK(train.size() == 1'003'854);
  CHECK(validation.size() == 111'540);
  std::vector<int64_t> ids(15);
  validation.read(0, ids);
  CHECK(tokenizer.decode(ids) == read_file(path).substr(1'003'854, 15));
}
