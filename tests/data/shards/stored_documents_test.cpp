// Documents under labels in the store, whole and under the hash that runs hold; and the places where sources are cut.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <set>

#include "core/cpu/parallel.h"
#include "core/files/checksum.h"
#include "data/shards/store.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/data/files.h"
#include "tests/data/ids.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

TextSource built_in(std::string_view text) { return TextSource::of_paths({"a"}, std::array{BuiltInText{"a", text}}); }

std::shared_ptr<const Tokenizer> bytes() { return std::make_shared<ByteTokenizer>(); }
std::shared_ptr<const Tokenizer> characters(const char* all) { return std::make_shared<CharTokenizer>(all); }

// The stores in a folder.
int64_t stores(const std::string& folder) { return std::distance(std::filesystem::directory_iterator(folder), {}); }

// The hash that an earlier version of this program kept in checkpoints of runs on documents.
template <class T> uint64_t hash_of(const std::vector<T>& values, uint64_t seed) {
  return xxh64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}, seed);
}

constexpr int kDocuments = 300, kClasses = 4;
std::string text_of(int i) { return std::string(static_cast<size_t>(i == 7 ? 700'000 : i % 50), static_cast<char>('a' + i % 26)); }
std::string tsv() {
  std::string text;
  for (int i = 0; i < kDocuments; ++i) text += std::to_string(i % kClasses) + "\t" + text_of(i) + "\n";
  return text;
}
StoreSource labelled(std::string_view text, double train_fraction = 0) {
  return {built_in(text), {.format = DocumentFormat::tsv, .label_field = "1", .classes = kClasses}, train_fraction};
}

// The first characters of a UTF-8 text.
std::string first_characters(const std::string& text, int64_t count) {
  size_t at = 0;
  for (int64_t i = 0; i < count; ++i) at += decode_utf8(text, at).bytes;
  return text.substr(0, at);
}

}  // namespace

TEST_CASE("store: every document that has tokens is there, whole and with its label, under the hash of earlier versions") {
  const std::string text = tsv();
  const int before = thread_count();
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const Tokens tokens = open_source(labelled(text), bytes(), "").train;
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
    CHECK(tokens.hash() == hash_of(labels, hash_of(starts, hash_of(all, 0))));
  }
  set_thread_count(before);
}

TEST_CASE("store: documents are cut by their number, those without tokens too") {
  const ScratchFolder folder;
  const std::string text = "0\tab\n1\t\n2\tc\n3\td\n0\te\n1\tf\n2\tg\n3\th\n0\ti\n1\tj\n";
  for (int opening = 0; opening < 2; ++opening) {
    const StoredSource opened = open_source(labelled(text, 0.5), bytes(), folder / "cache");
    CHECK(ByteTokenizer().decode(read_all(opened.train)) == "abcde");
    CHECK(ByteTokenizer().decode(read_all(*opened.validation)) == "fghij");
    CHECK(opened.train.documents(0) == 4);
    CHECK(opened.validation->documents(0) == 5);
    CHECK(opened.validation->document(0, 1).first == 1);
    CHECK(opened.validation->label(0, 0) == 1);
    CHECK(opened.empty_documents == 1);
  }
  CHECK(stores(folder / "cache") == 1);
  CHECK(
      error_of([] { open_source(labelled("0\tab\n", 0.5), bytes(), ""); }) == "a: has 1 documents, too few for a training fraction of 0.5");
}

TEST_CASE("store: documents without tokens are counted, and the number is kept with the store") {
  const ScratchFolder folder;
  const std::string text = "0\t\n1\t\n2\tab\n3\t\n0\tc\n1\t" + std::string(700'000, 'd') + "\n2\t\n3\t\n";
  std::set<std::string> names;
  for (int opening = 0; opening < 2; ++opening) {
    CHECK(open_source(labelled(text), bytes(), folder / "cache").empty_documents == 5);
    CHECK(open_source(labelled(text, 0.5), bytes(), folder / "cache").empty_documents == 5);
    for (const auto& store : std::filesystem::directory_iterator(folder / "cache")) names.insert(store.path().filename());
  }
  CHECK(names.size() == 2);  // the second openings have made none
  CHECK(open_source(labelled("0\tab\n1\tc\n"), bytes(), "").empty_documents == 0);
  CHECK(open_source(labelled(tsv()), bytes(), "").empty_documents == kDocuments / 50);
}

TEST_CASE("store: a store whose description is of an earlier version is made again") {
  const ScratchFolder folder;
  const StoreSource source = labelled("0\tab\n1\t\n2\tc\n");
  open_source(source, bytes(), folder / "cache");
  const std::filesystem::path first = std::filesystem::directory_iterator(folder / "cache")->path();
  std::istringstream words(read_file(first / "description"));
  std::string version, stamp, shards, first_shards, cut, empty, train, validation;
  words >> version >> stamp >> shards >> first_shards >> cut >> empty >> train >> validation;
  CHECK(version == "4");
  CHECK(empty == "1");
  const std::string earlier = "3 " + stamp + " " + shards + " " + first_shards + " " + cut + " " + train + " " + validation;
  std::ofstream(first / "description") << earlier << format_message(" {}\n", {hash_bytes(earlier)});
  CHECK(open_source(source, bytes(), folder / "cache").empty_documents == 1);
  CHECK(stores(folder / "cache") == 1);
  CHECK(!std::filesystem::exists(first));
}

TEST_CASE("store: the hash of documents is another when a token, a boundary or a label is") {
  const auto hash = [](std::string_view text) { return open_source(labelled(text), bytes(), "").train.hash(); };
  for (const char* other : {"0\tab\n1\tce\n", "0\ta\n1\tbcd\n", "0\tab\n2\tcd\n"}) CHECK(hash(other) != hash("0\tab\n1\tcd\n"));
}

TEST_CASE("store: joined documents keep their labels, and have none where one source has none") {
  const Tokens a = open_source(labelled("0\tab\n1\tcd\n"), bytes(), "").train, b = open_source(labelled("3\tx\n"), bytes(), "").train;
  const Tokens both = join({a, b});
  CHECK(both.classes() == kClasses);
  CHECK(both.label(0, 1) == 1);
  CHECK(both.label(1, 0) == 3);
  CHECK(join({a, open_source({built_in("0\tx\n"), {.format = DocumentFormat::tsv}}, bytes(), "").train}).classes() == 0);
}

TEST_CASE("store: documents that cannot be read") {
  CHECK(contains(error_of([] { open_source(labelled("0\tab\n1\txyz\n"), characters("abx"), ""); }), "a:2: char tokenizer"));
  CHECK(error_of([] { open_source(labelled("0\t\n"), bytes(), ""); }) == "a: the inputs hold no tokens");
  CHECK(error_of([] { open_source(labelled("0\tab\n9\tcd\n"), bytes(), ""); }) == "a:2: label 9 is out of range: 4 classes have 0 to 3");
}

TEST_CASE("store: the first floor(fraction * characters) characters train, the rest validates") {
  for (const int64_t count : {2, 3, 10, 11, 1000, 300'001}) {
    const std::string text = mixed_text(static_cast<size_t>(count), 21 + static_cast<uint64_t>(count));
    for (const double fraction : {0.5, 0.9, 0.95}) {
      const auto expected = static_cast<int64_t>(std::floor(static_cast<double>(count) * fraction));
      if (expected == 0 || expected == count) continue;
      CAPTURE(count);
      CAPTURE(fraction);
      const StoredSource opened = open_source({.files = built_in(text), .train_fraction = fraction}, bytes(), "");
      const std::string train = first_characters(text, expected);
      CHECK(opened.cut == expected);
      CHECK(ByteTokenizer().decode(read_all(opened.train)) == train);
      CHECK(ByteTokenizer().decode(read_all(*opened.validation)) == text.substr(train.size()));
      CHECK(opened.train.name() == "a (train)");
      CHECK(opened.validation->name() == "a (validation)");
    }
  }
  const StoredSource latin = open_source({.files = built_in("caf\xe9 cr\xe8me!"), .train_fraction = 0.5}, bytes(), "");
  CHECK(ByteTokenizer().decode(read_all(latin.train)) == "caf\xe9 ");
  CHECK(ByteTokenizer().decode(read_all(*latin.validation)) == "cr\xe8me!");
  CHECK(error_of([] { open_source({.files = built_in("é"), .train_fraction = 0.9}, bytes(), ""); }) ==
        "split: a has 1 characters, too few for a training fraction of 0.9");
}

TEST_CASE("store: tinyshakespeare as nanoGPT cuts it" * doctest::test_suite("needs tinyshakespeare")) {
  const std::string path = corpus("tinyshakespeare/input.txt");
  if (path.empty()) return test::skip("needs tinyshakespeare/input.txt under $RICCI_DATA");
  const TextSource text(path);
  const auto tokenizer = std::make_shared<CharTokenizer>(CharTokenizer::of_text(text));
  const StoredSource opened = open_source({.files = text, .train_fraction = 0.9}, tokenizer, "");
  CHECK(opened.train.size() == 1'003'854);
  CHECK(opened.validation->size() == 111'540);
  std::vector<int64_t> ids(15);
  opened.validation->read(0, ids);
  CHECK(tokenizer->decode(ids) == read_file(path).substr(1'003'854, 15));
}
