// Documents in the cache, complete and under their labels; and the positions at which texts and documents are cut.
#include <doctest/doctest.h>

#include <cmath>

#include "data/shards/cache.h"
#include "data/text/utf8.h"
#include "tests/data/files.h"
#include "tests/data/ids.h"
#include "tests/data/shards/shard_files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

constexpr int kDocuments = 300, kClasses = 4;
std::string text_of(int i) { return std::string(static_cast<size_t>(i == 7 ? 300'000 : i % 50), static_cast<char>('a' + i % 26)); }
std::string tsv() {
  std::string text;
  for (int i = 0; i < kDocuments; ++i) text += std::to_string(i % kClasses) + "\t" + text_of(i) + "\n";
  return text;
}
Documents labelled(std::string_view text) {
  return {.files = built_in(text), .options = {.format = format_of(kTsv), .label_field = "1", .classes = kClasses}};
}

// The first characters of a UTF-8 text.
std::string first_characters(const std::string& text, int64_t count) {
  size_t at = 0;
  for (int64_t i = 0; i < count; ++i) at += decode_utf8(text, at).bytes;
  return text.substr(0, at);
}

}  // namespace

TEST_CASE("cache: every document that has tokens is there, whole and with its label") {
  const std::string text = tsv();
  for (const int threads : {1, 3}) {
    const Threads count(threads);
    const Tokens tokens = open_one(labelled(text), bytes(), "").tokens;
    std::vector<uint32_t> all;
    std::vector<int64_t> starts{0};
    std::vector<int32_t> labels;
    int64_t index = 0;
    for (int i = 0; i < kDocuments; ++i) {
      const std::string expected = text_of(i);
      if (expected.empty()) continue;
      const TokenSpan span = tokens.document(0, index);
      CHECK(span.first == starts.back());
      starts.push_back(span.end);
      std::vector<int64_t> ids(static_cast<size_t>(span.size()));
      tokens.read(span.first, ids);
      CHECK((ByteTokenizer().decode(ids) == expected));
      all.insert(all.end(), ids.begin(), ids.end());
      labels.push_back(static_cast<int32_t>(tokens.label(0, index++)));
      CHECK(labels.back() == i % kClasses);
    }
    CHECK(tokens.shards() == 1);
    CHECK(tokens.documents(0) == index);
    CHECK(tokens.size() == starts.back());
    CHECK(tokens.classes() == kClasses);
  }
}

TEST_CASE("cache: documents are cut by their number, those without tokens left out") {
  const ScratchFolder folder;
  const std::string text = "0\tab\n1\t\n2\tc\n3\td\n0\te\n1\tf\n2\tg\n3\th\n0\ti\n1\tj\n";
  for (int opening = 0; opening < 2; ++opening) {
    const CachedText opened = open_one(labelled(text), bytes(), folder / "cache", 0.5);
    const auto [train, validation] = opened.tokens.split(0.5);
    CHECK(ByteTokenizer().decode(read_all(train)) == "abcde");
    CHECK(ByteTokenizer().decode(read_all(validation)) == "fghij");
    CHECK((train.documents(0) == 4 && validation.documents(0) == 5 && train.shards() == 1));
    CHECK(validation.document(0, 1).first == 1);
    CHECK(validation.label(0, 0) == 1);
    CHECK((train.name() == "a (train)" && train.hash() != validation.hash()));
    CHECK(opened.empty_documents == 1 - opening);
  }
  CHECK(names_in(folder / "cache").size() == 1);
  CHECK(error_of([] { open_one(labelled("0\tab\n"), bytes(), "").tokens.split(0.5); }) ==
        "a: a training fraction of 0.5 leaves no documents for training or validation; set validation=...");
}

TEST_CASE("cache: documents without tokens are counted") {
  const std::string text = "0\t\n1\t\n2\tab\n3\t\n0\tc\n1\t" + std::string(300'000, 'd') + "\n2\t\n3\t\n";
  CHECK(open_one(labelled(text), bytes(), "").empty_documents == 5);
  CHECK(open_one(labelled("0\tab\n1\tc\n"), bytes(), "").empty_documents == 0);
  CHECK(open_one(labelled(tsv()), bytes(), "").empty_documents == kDocuments / 50);
}

TEST_CASE("cache: the hash of documents is another when a token, a boundary or a label is") {
  const auto hash = [](std::string_view text) { return open_one(labelled(text), bytes(), "").tokens.hash(); };
  for (const char* other : {"0\tab\n1\tce\n", "0\ta\n1\tbcd\n", "0\tab\n2\tcd\n"}) CHECK(hash(other) != hash("0\tab\n1\tcd\n"));
}

TEST_CASE("cache: joined documents keep their labels, and have none where one source has none") {
  const Tokens a = open_one(labelled("0\tab\n1\tcd\n"), bytes(), "").tokens, b = open_one(labelled("3\tx\n"), bytes(), "").tokens;
  const Tokens both = join({a, b});
  CHECK(both.classes() == kClasses);
  CHECK(both.label(0, 1) == 1);
  CHECK(both.label(1, 0) == 3);
  CHECK(join({a, open_one({.files = built_in("0\tx\n"), .options = {.format = format_of(kTsv)}}, bytes(), "").tokens}).classes() == 0);
}

TEST_CASE("cache: documents that cannot be read") {
  CHECK(contains(error_of([] { open_one(labelled("0\tab\n1\txyz\n"), characters("abx"), ""); }), "a:2: char tokenizer"));
  CHECK(error_of([] { open_one(labelled("0\t\n"), bytes(), ""); }) == "a: the inputs contain no tokens");
  CHECK(error_of([] { open_one(labelled("0\tab\n9\tcd\n"), bytes(), ""); }) ==
        "a:2: label 9 is out of range for 4 classes, expected 0 to 3; set more classes, or list all labels in the key labels, such as "
        "[1, 2, 5]");
}

TEST_CASE("cache: the first floor(fraction * characters) characters train, the rest validates") {
  for (const int64_t count : {2, 3, 11, 1000, 100'001}) {
    const std::string text = mixed_text(static_cast<size_t>(count), 21 + static_cast<uint64_t>(count));
    for (const double fraction : {0.5, 0.9, 0.95}) {
      const auto expected = static_cast<int64_t>(std::floor(static_cast<double>(count) * fraction));
      if (expected == 0 || expected == count) continue;
      CAPTURE(count);
      CAPTURE(fraction);
      const CachedText opened = open_one(plain(built_in(text)), bytes(), "", fraction);
      const std::string first = first_characters(text, expected);
      const auto [train, validation] = opened.tokens.split_at_cut();
      CHECK(opened.tokens.bytes_before_cut() == std::ssize(first));
      CHECK(ByteTokenizer().decode(read_all(train)) == first);
      CHECK(ByteTokenizer().decode(read_all(validation)) == text.substr(first.size()));
      CHECK((train.name() == "a (train)" && validation.name() == "a (validation)"));
    }
  }
  const auto [train, validation] =
      open_one(plain(built_in("caf\xe9 cr\xe8me!").read_as(Encoding::bytes)), bytes(), "", 0.5).tokens.split_at_cut();
  CHECK(ByteTokenizer().decode(read_all(train)) == "caf\xe9 ");
  CHECK(ByteTokenizer().decode(read_all(validation)) == "cr\xe8me!");
  CHECK(error_of([] { open_one(plain(built_in("é")), bytes(), "", 0.9); }) ==
        "split: a has 1 characters, too few for a training fraction of 0.9");
}

TEST_CASE("cache: tinyshakespeare as nanoGPT cuts it" * doctest::test_suite("needs tinyshakespeare")) {
  const std::string path = corpus("tinyshakespeare/input.txt");
  if (path.empty()) return test::skip("needs tinyshakespeare/input.txt under $RICCI_DATA");
  const TextSource text(path);
  const auto tokenizer = characters_of(plain(text));
  const auto [train, validation] = open_one(plain(text), tokenizer, "", 0.9).tokens.split_at_cut();
  CHECK(train.size() == 1'003'854);
  CHECK(validation.size() == 111'540);
  std::vector<int64_t> ids(15);
  validation.read(0, ids);
  CHECK(tokenizer->decode(ids) == read_file(path).substr(1'003'854, 15));
}
