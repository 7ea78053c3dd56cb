// The store of tokens: found again unread, replaced when it is stale, shared with other programs, and never trusted blindly; documents
// under labels in it, whole and under the hash that runs hold; and the places where sources are cut.
#include "data/shards/store.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <mutex>
#include <set>

#include "core/files/checksum.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "tests/data/files.h"
#include "tests/data/ids.h"
#include "tests/data/shards/shard_files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

namespace fs = std::filesystem;

// Counts the bytes it encodes and the most memory seen on the way; `meanwhile` is called once.
class Observer final : public Tokenizer {
 public:
  explicit Observer(std::function<void()> meanwhile = {}) : meanwhile(std::move(meanwhile)) {}
  std::string name() const override { return "byte"; }
  int64_t vocab_size() const override { return 256; }
  std::string model_json() const override { return ByteTokenizer().to_json(); }
  size_t model_prefix(std::string_view text) const override { return text.size(); }
  void append_model_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const override {
    ByteTokenizer().append_ids(piece, offset, ids);
    const std::lock_guard lock(mutex);
    bytes += static_cast<int64_t>(piece.size());
    peak = std::max(peak, resident_bytes());
    if (meanwhile) std::exchange(meanwhile, {})();
  }
  mutable std::function<void()> meanwhile;
  mutable std::mutex mutex;  // several threads encode
  mutable int64_t bytes = 0, peak = 0;

 protected:
  void append_text(int64_t, DecodeState&, std::string&) const override {}
};

// A text that does not change is known by its bytes.
TextSource built_in(std::string_view text, const std::string& name = "a") {
  return TextSource::of_paths({name}, std::array{BuiltInText{name, text}});
}

Tokens open(const TextSource& text, const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& cache) {
  return open_source({text}, tokenizer, cache).train;
}

std::shared_ptr<const Tokenizer> bytes() { return std::make_shared<ByteTokenizer>(); }
std::shared_ptr<const Tokenizer> characters(const char* all) { return std::make_shared<CharTokenizer>(all); }

// The stores in a folder.
std::vector<std::string> stores(const std::string& folder) {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(folder)) all.push_back(entry.path().string());
  return all;
}

std::string file_of(const std::string& folder, const std::string& name) { return stores(folder).at(0) + "/" + name; }

// Bytes that this process has asked files for so far.
int64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string key;
  int64_t value = 0;
  io >> key >> value;
  return value;
}

// The hash that an earlier version of this program kept in checkpoints of runs on texts.
uint64_t hash_of_ids(const std::vector<int64_t>& ids) {
  std::string packed;
  for (const int64_t id : ids) {
    packed += static_cast<char>(id & 0xff);
    packed += static_cast<char>(id >> 8);
  }
  return hash_bytes(packed);
}

// The hash that an earlier version of this program kept in checkpoints of runs on documents.
template <class T> uint64_t hash_of(const std::vector<T>& values, uint64_t seed) {
  return xxh64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}, seed);
}

constexpr int kDocuments = 300, kClasses = 4;
std::string text_of(int i) { return std::string(static_cast<size_t>(i == 7 ? 300'000 : i % 50), static_cast<char>('a' + i % 26)); }
std::string tsv() {
  std::string text;
  for (int i = 0; i < kDocuments; ++i) text += std::to_string(i % kClasses) + "\t" + text_of(i) + "\n";
  return text;
}
StoreSource labelled(std::string_view text, double train_fraction = 0) {
  return {built_in(text), {.format = format_of(kTsv), .label_field = "1", .classes = kClasses}, train_fraction};
}

// The first characters of a UTF-8 text.
std::string first_characters(const std::string& text, int64_t count) {
  size_t at = 0;
  for (int64_t i = 0; i < count; ++i) at += decode_utf8(text, at).bytes;
  return text.substr(0, at);
}

}  // namespace

TEST_CASE("store: the ids of a text, read anywhere, under the hash that runs of earlier versions hold") {
  const ScratchFolder folder;
  const std::string text = mixed_text(70'007, 11);
  const TextSource source(write_compressed(folder, "a.gz", text, ARCHIVE_FILTER_GZIP));
  const auto tokenizer = std::make_shared<CharTokenizer>(CharTokenizer::of_text(source));
  const Tokens tokens = open(source, tokenizer, folder / "cache");
  const std::vector<int64_t> expected = tokenizer->encode(text);
  CHECK(read_all(tokens) == expected);
  CHECK(tokens.hash() == hash_of_ids(expected));
  CHECK(tokens.documents(0) == (70'007 + TokenSource::kBlock - 1) / TokenSource::kBlock);
  std::vector<int64_t> some(7);
  CHECK(error_of([&] { tokens.read(70'001, some); }) == "a.gz: tokens 70001 to 70008 are not in a text of 70007 tokens");
}

// The README is a file that was not written a moment ago, so that its time shows every change.
TEST_CASE("store: a second opening reads the first one's shards, and not the text") {
  const ScratchFolder folder;
  const std::string path = RICCI_TESTS_FOLDER "/../README.md";
  while (!TextSource(path).is_settled()) ::usleep(100'000);  // somebody has just written to it
  const TextSource text(path);
  const std::string cache = folder / "deep/cache";
  const auto tokenizer = train_tokenizer(*find_tokenizer_kind("word"), built_in("words other"), {}, {});
  for (const double fraction : {0.0, 0.9}) {
    open_source({.files = text, .train_fraction = fraction}, tokenizer, cache);
    const int64_t before = bytes_read();
    const StoredSource opened = open_source({.files = text, .train_fraction = fraction}, tokenizer, cache);
    CHECK(bytes_read() - before < text.bytes_on_disk() / 2);
    CHECK(opened.train.size() > 1000);
  }
  CHECK(stores(cache).size() == 2);
}

TEST_CASE("store: a changed text or tokenizer has its own tokens, and who has the old ones open keeps them") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "abcabc"), cache = folder / "cache";
  const Tokens old = open(TextSource(path), characters("abc"), cache);
  CHECK(read_all(open(TextSource(path), characters("cba"), cache)) == std::vector<int64_t>{2, 1, 0, 2, 1, 0});
  folder.write("a.txt", "cbacba");  // as many bytes, at once
  CHECK(read_all(open(TextSource(path), characters("abc"), cache)) == std::vector<int64_t>{2, 1, 0, 2, 1, 0});
  CHECK(stores(cache).size() == 2);
  CHECK(read_all(old) == std::vector<int64_t>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("store: what is damaged, cut or exchanged is noticed and made again") {
  const ScratchFolder folder;
  const std::string text = mixed_text(5000, 13), cache = folder / "cache";
  const auto reopened = [&] { return read_all(open(built_in(text), bytes(), cache)) == ByteTokenizer().encode(text); };
  CHECK(reopened());
  for (const char* name : {"shard-00000.tokens", "description", "tokenizer.json"}) {
    const std::string good = read_file(file_of(cache, name));
    for (const size_t at : {size_t{0}, std::min(size_t{24}, good.size() - 1), good.size() - 1}) {
      std::string other = good;
      other[at] = static_cast<char>(other[at] == 0 ? 1 : 0);
      for (const std::string& bad : {other, good.substr(0, at), good + "x"}) {
        folder.write("bad", bad);
        fs::copy_file(folder / "bad", file_of(cache, name), fs::copy_options::overwrite_existing);
        CHECK(reopened());
        CHECK(stores(cache).size() == 1);
      }
    }
  }
}

TEST_CASE("store: what an interrupted program left is removed by the next one") {
  const ScratchFolder folder;
  const std::string cache = folder / "cache";
  open(built_in("text"), bytes(), cache);
  fs::remove(file_of(cache, "description"));
  open(built_in("text"), bytes(), cache);
  CHECK(stores(cache).size() == 1);
  CHECK(fs::exists(file_of(cache, "description")));
}

TEST_CASE("store: two programs at once each have their tokens") {
  const ScratchFolder folder;
  const std::string text = mixed_text(3000, 15), cache = folder / "cache";
  std::optional<Tokens> inner;
  const auto outer = std::make_shared<Observer>([&] { inner = open(built_in(text), bytes(), cache); });
  CHECK(read_all(open(built_in(text), outer, cache)) == ByteTokenizer().encode(text));
  CHECK(read_all(*inner) == ByteTokenizer().encode(text));
  const auto observer = std::make_shared<Observer>();
  open(built_in(text), observer, cache);
  CHECK(observer->bytes == 0);
}

TEST_CASE("store: damage while it is in use is an error, not a crash") {
  const ScratchFolder folder;
  const Tokens tokens = open(built_in(std::string(100, 'a')), characters("a"), folder / "cache");
  const std::string path = file_of(folder / "cache", "shard-00000.tokens");
  read_all(tokens);
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(128 + 2 * 30).write("\x09", 1);
  CHECK(error_of([&] { read_all(tokens); }) == path + ": id 9 of token 30 is outside the vocabulary of 1");
  fs::resize_file(path, 128 + 2 * 99);
  CHECK(error_of([&] { read_all(tokens); }) == path + ": the shard was cut short while it was in use");
}

TEST_CASE("store: an error on the way names the text and leaves nothing behind") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", "abc-abc"));
  CHECK(error_of([&] { open(source, characters("abc"), folder / "cache"); }) ==
        "a.txt: char tokenizer: '-' (U+002D) at byte 3 is not among the 3 characters of the vocabulary");
  CHECK(fs::is_empty(folder / "cache"));
  CHECK(contains(error_of([&] { open_source({.files = source, .train_fraction = 0.4}, characters("abc"), ""); }),
      "a.txt (validation): char tokenizer: '-' (U+002D) at byte 3 "));
  const TextSource grown(folder.write("b.txt", "abc"));
  folder.write("b.txt", "abcd");
  CHECK(error_of([&] { open(grown, bytes(), folder / "cache"); }) ==
        "data: " + folder / "b.txt" + " changed while it was in use: it had 3 bytes and now has 4, or others");
  CHECK(fs::is_empty(folder / "cache"));
}

TEST_CASE("store: without a cache folder the shards are in files that nobody sees") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", "abc"));
  const std::string temporary = folder / "tmp", file = folder.write("file", "not a folder");
  fs::create_directory(temporary);
  const ScopedVariable place("TMPDIR", temporary.c_str());
  for (const std::string& cache : {file + "/cache", std::string("/proc"), std::string()}) {
    CHECK(read_all(open(source, bytes(), cache)) == std::vector<int64_t>{97, 98, 99});
    CHECK(fs::is_empty(temporary));
  }
  const ScopedVariable elsewhere("TMPDIR", "/nonexistent");  // there is /tmp
  CHECK(read_all(open(source, bytes(), "")) == std::vector<int64_t>{97, 98, 99});
}

TEST_CASE("store: the rights of a cache folder that the user names stay as they are") {
  const ScratchFolder folder;
  const std::string cache = folder / "cache";
  const ScopedVariable named("RICCI_CACHE", cache.c_str());
  const auto rights = [](const std::string& path) {
    struct stat status = {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status.st_mode & 07777;
  };
  for (const mode_t before : {02775, 01777, 0777, 0755, 0700}) {
    fs::create_directory(cache);
    REQUIRE(::chmod(cache.c_str(), before) == 0);
    const mode_t mask = ::umask(002);  // as in groups that share files
    open(built_in("abc"), bytes(), cache);
    ::umask(mask);
    CHECK(rights(cache) == before);
    REQUIRE(stores(cache).size() == 1);
    CHECK(rights(stores(cache)[0]) == (before == 02775 ? 02775 : 0775));
    for (const auto& file : fs::directory_iterator(stores(cache)[0])) CHECK(rights(file.path()) == 0664);
    fs::remove_all(cache);
  }
  open(built_in("abc"), bytes(), folder / "other/place");  // one that the user does not name
  CHECK((rights(folder / "other") == 0700 && rights(folder / "other/place") == 0700));
}

TEST_CASE("store: a cache folder that cannot be used is told, and the tokens are right") {
  const ScratchFolder folder;
  const std::string file = folder.write("file", "x");
  const auto fault_of = [](const std::string& cache) {
    const StoredSource stored = open_source({built_in("abc")}, bytes(), cache);
    CHECK(read_all(stored.train) == std::vector<int64_t>{97, 98, 99});
    return stored.cache_fault;
  };
  CHECK(fault_of(folder / "cache") == "");
  CHECK(fault_of("") == "");
  CHECK(fault_of(file) == file + ": cannot be made: a file is in its place");
  CHECK(fault_of(file + "/below") == file + ": cannot be made: a file is in its place");
  CHECK(contains(fault_of("/proc/self/cache"), "/proc/self/cache: cannot be made: "));
}

TEST_CASE("store: the default cache folder") {
  const ScopedVariable chosen("RICCI_CACHE", nullptr);
  {
    const ScopedVariable cache("XDG_CACHE_HOME", "/some/cache");
    CHECK(default_cache_folder() == "/some/cache/ricci");
  }
  const ScopedVariable home("HOME", "/home/someone");
  for (const char* unused : {static_cast<const char*>(nullptr), "", "relative"}) {
    const ScopedVariable cache("XDG_CACHE_HOME", unused);
    CHECK(default_cache_folder() == "/home/someone/.cache/ricci");
  }
  const ScopedVariable cache("XDG_CACHE_HOME", nullptr);
  for (const char* none : {static_cast<const char*>(nullptr), "", "relative"}) {
    const ScopedVariable no_home("HOME", none);
    CHECK(default_cache_folder() == "");
  }
}

TEST_CASE("store: a tokenizer is made once for all sources, and found with them") {
  const ScratchFolder folder;
  int made = 0;
  const TokenizerRequest request{{"char"}, true, [&](const std::string& all, const std::vector<int64_t>&, int64_t) {
                                   ++made;
                                   return std::make_shared<CharTokenizer>(all);
                                 }};
  const std::vector<StoreSource> sources{{built_in("bca", "a")}, {built_in("xéy", "b")}};
  for (int opening = 0; opening < 2; ++opening) {
    const auto opened = open_sources(sources, nullptr, request, folder / "cache");
    CHECK(read_all(opened[0].train) == std::vector<int64_t>{1, 2, 0});
    CHECK(read_all(opened[1].train) == std::vector<int64_t>{3, 5, 4});
    CHECK(made == 1);
    const auto observer = std::make_shared<CharTokenizer>("abcxyé");
    CHECK(read_all(open_sources(sources, observer, request, folder / "cache")[1].train) == std::vector<int64_t>{3, 5, 4});
    CHECK(stores(folder / "cache").size() == 2);  // the tokenizer that is given is the one that was made
  }
}

TEST_CASE("store: 40 MB are tokenised and read in little memory") {
  const ScratchFolder folder;
  const Threads two(2);
  {
    std::ofstream out(folder / "large", std::ios::binary);
    for (int i = 0; i < 40; ++i) out << std::string(1'000'000, static_cast<char>('a' + i % 26));
  }
  const auto observer = std::make_shared<Observer>();
  const int64_t before = resident_bytes();
  const Tokens tokens = open(TextSource(folder / "large"), observer, folder / "cache");
  std::vector<int64_t> ids(62'500);
  int64_t peak = observer->peak, wrong = 0;
  for (int64_t first = 0; first < tokens.size(); first += static_cast<int64_t>(ids.size())) {
    tokens.read(first, ids);
    wrong += std::count(ids.begin(), ids.end(), 'a' + first / 1'000'000 % 26) != 62'500;
  }
  CHECK(tokens.size() == 40'000'000);
  CHECK(wrong == 0);
  constexpr int64_t bound = 36'000'000;
  CHECK(peak - before < bound * kSanitizerFactor + kSanitizerBytes);
}

TEST_CASE("store: every document that has tokens is there, whole and with its label, under the hash of earlier versions") {
  const std::string text = tsv();
  for (const int threads : {1, 3}) {
    const Threads count(threads);
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
  CHECK(stores(folder / "cache").size() == 1);
  CHECK(
      error_of([] { open_source(labelled("0\tab\n", 0.5), bytes(), ""); }) == "a: has 1 documents, too few for a training fraction of 0.5");
}

TEST_CASE("store: documents without tokens are counted, and the number is kept with the store") {
  const ScratchFolder folder;
  const std::string text = "0\t\n1\t\n2\tab\n3\t\n0\tc\n1\t" + std::string(300'000, 'd') + "\n2\t\n3\t\n";
  std::set<std::string> names;
  for (int opening = 0; opening < 2; ++opening) {
    CHECK(open_source(labelled(text), bytes(), folder / "cache").empty_documents == 5);
    CHECK(open_source(labelled(text, 0.5), bytes(), folder / "cache").empty_documents == 5);
    for (const std::string& store : stores(folder / "cache")) names.insert(store);
  }
  CHECK(names.size() == 2);  // the second openings have made none
  CHECK(open_source(labelled("0\tab\n1\tc\n"), bytes(), "").empty_documents == 0);
  CHECK(open_source(labelled(tsv()), bytes(), "").empty_documents == kDocuments / 50);
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
  CHECK(join({a, open_source({built_in("0\tx\n"), {.format = format_of(kTsv)}}, bytes(), "").train}).classes() == 0);
}

TEST_CASE("store: documents that cannot be read") {
  CHECK(contains(error_of([] { open_source(labelled("0\tab\n1\txyz\n"), characters("abx"), ""); }), "a:2: char tokenizer"));
  CHECK(error_of([] { open_source(labelled("0\t\n"), bytes(), ""); }) == "a: the inputs hold no tokens");
  CHECK(error_of([] { open_source(labelled("0\tab\n9\tcd\n"), bytes(), ""); }) == "a:2: label 9 is out of range: 4 classes have 0 to 3");
}

TEST_CASE("store: the first floor(fraction * characters) characters train, the rest validates") {
  for (const int64_t count : {2, 3, 11, 1000, 100'001}) {
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
  const StoredSource latin =
      open_source({.files = built_in("caf\xe9 cr\xe8me!").read_as(Encoding::bytes), .train_fraction = 0.5}, bytes(), "");
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
