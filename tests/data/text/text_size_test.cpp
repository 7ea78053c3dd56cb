// Words counted by hand, across the blocks of a stream, and the published numbers of a real corpus.
#include <doctest/doctest.h>

#include "data/text/text.h"
#include "tests/data/files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

TEST_CASE("text size: words, and every line end as one more") {
  const ScratchFolder folder;
  const struct {
    const char* text;
    int64_t words;
  } cases[] = {{"one", 1}, {"one\n", 2}, {" = Robert <unk> = \n", 5}, {" \n \n", 2}, {"a\tb\r\nc  d", 5}, {"\n\n\n", 3},
      {"caf\xc3\xa9 \xe2\x80\x93 x", 3}, {"a\vb\fc", 3}};
  for (const auto& [each_text, words] : cases) {
    const char* const text = each_text;
    CAPTURE(text);
    const TextSize size = size_of_text(TextSource(folder.write("a.txt", text)));
    CHECK(size.words == words);
    CHECK(size.bytes == static_cast<int64_t>(std::string_view(text).size()));
  }
}

TEST_CASE("text size: words that lie across blocks of the stream, and across files") {
  const ScratchFolder folder;
  std::string text;
  for (int64_t i = 0; i < 100'000; ++i) text += std::string(static_cast<size_t>(1 + i % 13), 'x') + (i % 10 == 9 ? "\n" : " ");
  const TextSize size = size_of_text(TextSource(folder.write("a.txt", text)));
  CHECK(size.words == 110'000);
  CHECK(size.bytes == static_cast<int64_t>(text.size()));
  const std::string first = folder.write("b.txt", "one tw"), second = folder.write("c.txt", "o three");
  CHECK(size_of_text(TextSource::of_paths({first, second})).words == 3);
  CHECK(size_of_text(TextSource(first).part("end", 2, 6)).words == 2);  // "e tw"
}

TEST_CASE("text size: the published token counts of WikiText" * doctest::test_suite("needs WikiText-2")) {
  for (const auto& [name, words, bytes] : {std::tuple{"valid", 217'646, 1'121'681}, {"test", 245'569, 1'256'449}}) {
    const std::string path = corpus(std::string("wikitext-2/wiki.") + name + ".tokens.gz");
    if (path.empty()) return test::skip("needs wikitext-2 under $RICCI_DATA");
    const TextSize size = size_of_text(TextSource(path));
    CHECK(size.words == words);
    CHECK(size.bytes == bytes);
  }
}
