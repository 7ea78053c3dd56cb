// The token cache: found again without reading, replaced when stale, continued when incomplete, shared with other programs, and always
// verified.
#include "data/shards/cache.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "core/files/checksum.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "tests/data/files.h"
#include "tests/data/ids.h"
#include "tests/data/shards/shard_files.h"

using namespace ricci;
using namespace test_data;

namespace {

namespace fs = std::filesystem;

// Counts the bytes it encodes and the peak memory; `meanwhile` is called once.
class Observer final : public Tokenizer {
 public:
  explicit Observer(std::function<void()> meanwhile = {}) : meanwhile(std::move(meanwhile)) {}
  std::string name() const override { return "byte"; }
  int64_t vocab_size() const override { return 256; }
  Json model_json() const override { return ByteTokenizer().json(); }
  size_t model_prefix(std::string_view text) const override { return text.size(); }
  void append_model_ids(std::string_view piece, int64_t offset, bool, std::vector<int64_t>& ids) const override {
    ByteTokenizer().append_ids(piece, offset, ids);
    const std::lock_guard lock(mutex);
    bytes += static_cast<int64_t>(piece.size());
    peak = std::max(peak, resident_bytes());
    if (meanwhile) std::exchange(meanwhile, {})();
  }
  mutable std::function<void()> meanwhile;
  mutable std::mutex mutex;  // multiple threads encode
  mutable int64_t bytes = 0, peak = 0;

 protected:
  void append_text(int64_t, DecodeState&, std::string&) const override {}
};

Tokens open(const TextSource& text, const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& cache) {
  return open_one(plain(text), tokenizer, cache).tokens;
}

// The folders of a cache.
std::vector<std::string> folders(const std::string& folder) {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(folder)) all.push_back(entry.path().string());
  return all;
}

std::string file_of(const std::string& folder, const std::string& name) { return folders(folder).at(0) + "/" + name; }

// Bytes that this process has read from files so far.
int64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string key;
  int64_t value = 0;
  io >> key >> value;
  return value;
}

}  // namespace

TEST_CASE("cache: the ids of a text, read anywhere, and in blocks") {
  const ScratchFolder folder;
  const std::string text = mixed_text(70'007, 11);
  const TextSource source(write_compressed(folder, "a.gz", text, ARCHIVE_FILTER_GZIP));
  const auto tokenizer = characters_of(plain(source));
  const Tokens tokens = open(source, tokenizer, folder / "cache");
  const std::vector<int64_t> expected = tokenizer->encode(text);
  CHECK(read_all(tokens) == expected);
  CHECK(!tokens.has_mask());
  CHECK(tokens.documents(0) == 1);
  const Tokens blocks = tokens.in_blocks();
  CHECK(blocks.documents(0) == (70'007 + Tokens::kBlock - 1) / Tokens::kBlock);
  for (int64_t i = 0; i < blocks.documents(0); ++i)
    CHECK((blocks.document(0, i).first == i * Tokens::kBlock &&
           blocks.document(0, i).end == std::min<int64_t>(70'007, (i + 1) * Tokens::kBlock)));
  std::vector<int64_t> some(7);
  CHECK(error_of([&] { tokens.read(70'001, some); }) == "a.gz: tokens 70001 to 70008 are outside the text of 70007 tokens");
}

TEST_CASE("cache: a second opening reads the first one's shards, and not the text") {
  const ScratchFolder folder;
  const std::string path = RICCI_TESTS_FOLDER "/../README.md";
  const TextSource text(path);
  const std::string cache = folder / "deep/cache";
  const auto tokenizer = train("word", plain(built_in("words other")));
  for (const double fraction : {0.0, 0.9}) {
    const uint64_t hash = open_one(plain(text), tokenizer, cache, fraction).tokens.hash();
    const int64_t before = bytes_read();
    const CachedText opened = open_one(plain(text), tokenizer, cache, fraction);
    CHECK(bytes_read() - before < text.bytes_on_disk() / 2);
    CHECK(opened.tokens.size() > 1000);
    CHECK(opened.tokens.hash() == hash);
  }
  CHECK(folders(cache).size() == 2);
}

TEST_CASE("cache: a changed text or tokenizer has its own tokens, and who has the old ones open keeps them") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "abcabc"), cache = folder / "cache";
  const Tokens old = open(TextSource(path), characters("abc"), cache);
  CHECK(read_all(open(TextSource(path), characters("cba"), cache)) == std::vector<int64_t>{2, 1, 0, 2, 1, 0});
  folder.write("a.txt", "cbacba");  // the same size, immediately
  CHECK(read_all(open(TextSource(path), characters("abc"), cache)) == std::vector<int64_t>{2, 1, 0, 2, 1, 0});
  CHECK(folders(cache).size() == 1);  // the tokens of the former text are gone
  CHECK(read_all(old) == std::vector<int64_t>{0, 1, 2, 0, 1, 2});
  fs::remove_all(cache);
  CHECK(read_all(old) == std::vector<int64_t>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("cache: damaged, cut and exchanged shards are noticed and made again") {
  const ScratchFolder folder;
  const std::string text = mixed_text(5000, 13), cache = folder / "cache";
  const auto reopened = [&] { return read_all(open(built_in(text), bytes(), cache)) == ByteTokenizer().encode(text); };
  CHECK(reopened());
  const std::string shard = file_of(cache, "shard-00000.tokens");
  for (const std::string& path : {shard, file_of(cache, "tokenizer.json")}) {
    const std::string good = read_file(path);
    for (const size_t at : {size_t{0}, std::min(size_t{24}, good.size() - 1), good.size() - 1}) {
      std::string other = good;
      other[at] = static_cast<char>(other[at] == 0 ? 1 : 0);
      for (const std::string& bad : {other, good.substr(0, at), good + "x"}) {
        fs::copy_file(folder.write("bad", bad), path, fs::copy_options::overwrite_existing);
        CHECK(reopened());
        CHECK(folders(cache).size() == 1);
      }
    }
  }
  open(built_in(text + "more"), bytes(), folder / "other");
  fs::copy_file(file_of(folder / "other", "shard-00000.tokens"), shard, fs::copy_options::overwrite_existing);
  CHECK(reopened());
  for (const char* more : {"shard-00001.tokens", "shard-00002.tokens"}) {  // without the shards before them
    fs::copy_file(shard, file_of(cache, more));
    CHECK(reopened());
  }
  for (const char* gone : {"shard-00000.tokens", "tokenizer.json"}) {
    fs::remove(file_of(cache, gone));
    CHECK(reopened());
    CHECK(fs::exists(shard));
  }
}

TEST_CASE("cache: an interrupted start continues to the same bytes") {
  const ScratchFolder folder;
  const std::string cache = folder / "cache", text(10'000'000, 'a');
  const auto open_again = [&] { return open_one(plain(built_in(text)), characters("a"), cache, 0.75); };
  const CachedText whole = open_again();
  const auto [train, validation] = whole.tokens.split_at_cut();
  CHECK((train.size() == 7'500'000 && validation.size() == 2'500'000 && whole.tokens.bytes_before_cut() == 7'500'000));
  std::vector<std::string> shards;
  while (fs::exists(file_of(cache, shard_name(std::ssize(shards)))))
    shards.push_back(read_file(file_of(cache, shard_name(std::ssize(shards)))));
  REQUIRE(shards.size() >= 3);
  for (size_t kept = 0; kept <= shards.size(); ++kept) {
    for (size_t i = kept; i < shards.size(); ++i) fs::remove(file_of(cache, shard_name(static_cast<int64_t>(i))));
    CHECK(open_again().tokens.hash() == whole.tokens.hash());
    for (size_t i = 0; i < shards.size(); ++i) CHECK((read_file(file_of(cache, shard_name(static_cast<int64_t>(i)))) == shards[i]));
  }
  const auto observer = std::make_shared<Observer>();
  const Documents source = plain(built_in(text));
  open_one(source, observer, folder / "plain");
  CHECK(observer->bytes == 10'000'000);
  fs::remove(file_of(folder / "plain", shard_name(2)));
  open_one(source, observer, folder / "plain");
  CHECK((observer->bytes > 10'000'000 && observer->bytes < 13'000'000));
}

TEST_CASE("cache: the tokens of a text are known by their contents, whatever its path, its compression and the number of its files") {
  const ScratchFolder folder;
  const std::string text = mixed_text(12'000'000, 17) + "\n";  // more than one shard
  const auto hash = [&](const std::string& path) { return open_one(plain(TextSource(path)), bytes(), folder / "cache", 0.9).tokens; };
  const Tokens first = hash(folder.write("a.txt", text));
  CHECK(names_in(folders(folder / "cache")[0]).size() > 3);
  for (const std::string& same : {folder.write("elsewhere/b.txt", text), write_compressed(folder, "c.zst", text, ARCHIVE_FILTER_ZSTD)}) {
    const Tokens other = hash(same);
    CHECK(other.hash() == first.hash());
    CHECK(other.split_at_cut().first.hash() == first.split_at_cut().first.hash());
    CHECK(other.split_at_cut().second.hash() == first.split_at_cut().second.hash());
  }
  std::string changed = text;
  changed[5] ^= 1;
  CHECK(hash(folder.write("d.txt", changed)).hash() != first.hash());
}

TEST_CASE("cache: an unreadable second file leaves what was made, and the next start continues") {
  const ScratchFolder folder;
  const std::string first = folder.write("a.txt", std::string(10'000'000, 'a')), second = folder.write("b.txt.gz", "");
  const std::string packed = read_file(write_compressed(folder, "b.txt.gz", std::string(100'000, 'b'), ARCHIVE_FILTER_GZIP));
  std::string damaged = packed;
  damaged[damaged.size() / 2] ^= 0x55;
  folder.write("b.txt.gz", damaged);
  const auto observer = std::make_shared<Observer>();
  const auto time = fs::last_write_time(second);
  CHECK(contains(error_of([&] { open_one(plain(TextSource({first, second})), observer, folder / "cache"); }), "b.txt.gz"));
  CHECK(fs::exists(file_of(folder / "cache", shard_name(0))));
  const std::vector<std::string> before = folders(folder / "cache");
  folder.write("c.txt", "x");  // a different error leaves no folder without a shard
  CHECK(error_of([&] { open_one(plain(TextSource(folder / "c.txt")), characters("a"), folder / "cache"); }) != "");
  CHECK(folders(folder / "cache") == before);
  (void)time;
}

TEST_CASE("cache: two programs at once make the tokens once") {
  const ScratchFolder folder;
  const std::string text = mixed_text(3000, 15), cache = folder / "cache";
  std::optional<Tokens> inner;
  std::thread other;
  const auto second = std::make_shared<Observer>();
  const auto first = std::make_shared<Observer>([&] {
    other = std::thread([&] { inner = open(built_in(text), second, cache); });
    ::usleep(100'000);
  });
  CHECK(read_all(open(built_in(text), first, cache)) == ByteTokenizer().encode(text));
  other.join();
  CHECK(read_all(*inner) == ByteTokenizer().encode(text));
  CHECK(second->bytes == 0);
  CHECK(folders(cache).size() == 1);
}

TEST_CASE("cache: one who waits for a program that fails makes the tokens") {
  const ScratchFolder folder;
  const std::string cache = folder / "cache";
  std::optional<Tokens> inner;
  std::thread other;
  const auto failing = std::make_shared<Observer>([&] {
    other = std::thread([&] { inner = open(built_in("text"), bytes(), cache); });
    ::usleep(100'000);
    fail("no");
  });
  CHECK(contains(error_of([&] { open(built_in("text"), failing, cache); }), "no"));
  other.join();
  CHECK(read_all(*inner) == ByteTokenizer().encode("text"));
  CHECK(folders(cache).size() == 1);
}

TEST_CASE("cache: damage while it is in use is an error, not a crash") {
  const ScratchFolder folder;
  const Tokens tokens = open(built_in(std::string(100, 'a')), characters("a"), folder / "cache");
  const std::string path = file_of(folder / "cache", "shard-00000.tokens");
  read_all(tokens);
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(128 + 2 * 30).write("\x09", 1);
  CHECK(error_of([&] { read_all(tokens); }) == path + ": id 9 at position 30 is outside the vocabulary of 1");
  fs::resize_file(path, 128 + 2 * 99);
  CHECK(error_of([&] { read_all(tokens); }) == path + ": the shard was cut short while it was in use");
}

TEST_CASE("cache: an error on the way names the text and leaves nothing behind") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", "abc-abc"));
  CHECK(error_of([&] { open(source, characters("abc"), folder / "cache"); }) ==
        "a.txt: char tokenizer: '-' (U+002D) at byte 3 is not among the 3 characters of the vocabulary");
  CHECK(fs::is_empty(folder / "cache"));
  CHECK(contains(error_of([&] { open_one(plain(source), characters("abc"), "", 0.4); }),
      "a.txt (validation): char tokenizer: '-' (U+002D) at byte 3 "));
  const TextSource grown(folder.write("b.txt", "abc"));
  folder.write("b.txt", "abcd");
  CHECK(error_of([&] { open(grown, bytes(), folder / "cache"); }) ==
        "data: " + folder / "b.txt" + " changed while it was in use (size before: 3 bytes, now: 4 bytes)");
  CHECK(fs::is_empty(folder / "cache"));
}

TEST_CASE("cache: without a cache folder the shards are in files that nobody sees") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", "abc"));
  const std::string temporary = folder / "tmp", file = folder.write("file", "not a folder");
  fs::create_directory(temporary);
  const ScopedVariable place("TMPDIR", temporary.c_str());
  for (const std::string& cache : {file + "/cache", std::string("/proc"), std::string()}) {
    CHECK(read_all(open(source, bytes(), cache)) == std::vector<int64_t>{97, 98, 99});
    CHECK(fs::is_empty(temporary));
  }
  const ScopedVariable elsewhere("TMPDIR", "/nonexistent");  // /tmp exists
  CHECK(read_all(open(source, bytes(), "")) == std::vector<int64_t>{97, 98, 99});
}

TEST_CASE("cache: the rights of a cache folder that the user names stay as they are") {
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
    REQUIRE(folders(cache).size() == 1);
    CHECK(rights(folders(cache)[0]) == (before == 02775 ? 02775 : 0775));
    for (const auto& file : fs::directory_iterator(folders(cache)[0])) CHECK(rights(file.path()) == 0664);
    fs::remove_all(cache);
  }
  open(built_in("abc"), bytes(), folder / "other/place");  // a folder that the user does not name
  CHECK((rights(folder / "other") == 0700 && rights(folder / "other/place") == 0700));
}

TEST_CASE("cache: a cache folder that cannot be used is told, and the tokens are right") {
  const ScratchFolder folder;
  const std::string file = folder.write("file", "x");
  const auto fault_of = [](const std::string& cache) {
    Cache all(cache);
    CHECK(read_all(all.tokens(plain(built_in("abc")), bytes()).tokens) == std::vector<int64_t>{97, 98, 99});
    return all.fault();
  };
  CHECK(fault_of(folder / "cache") == "");
  CHECK(fault_of("") == "");
  CHECK(fault_of(file) == file + ": cannot be created: a file already has this name");
  CHECK(fault_of(file + "/below") == file + ": cannot be created: a file already has this name");
  CHECK(contains(fault_of("/proc/self/cache"), "/proc/self/cache: cannot be created: "));
}

TEST_CASE("cache: the default cache folder") {
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

TEST_CASE("cache: a tokenizer is made once for all sources, found again, and made again if it is damaged or a text changed") {
  const ScratchFolder folder;
  std::vector<Documents> sources{plain(TextSource(folder.write("a.txt", "bca"))), plain(TextSource(folder.write("b.txt", "xéy")))};
  const std::string cache = folder / "cache";
  const auto made = Cache(cache).tokenizer({}, sources, 0);
  CHECK(made->vocab_size() == 6);
  const std::string text = file_of(cache, "text"), good = read_file(text);
  const int64_t before = bytes_read();
  CHECK(Cache(cache).tokenizer({}, sources, 0)->hash() == made->hash());
  CHECK(bytes_read() - before < 4096);
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] ^= 1;
    std::ofstream(text, std::ios::binary) << bad;
    CHECK(Cache(cache).tokenizer({}, sources, 0)->hash() == made->hash());
    CHECK(read_file(text) == good);
  }
  CHECK(Cache(cache).tokenizer({.eos = Eos::document}, sources, 0)->vocab_size() == 7);
  CHECK(folders(cache).size() == 2);
  folder.write("b.txt", "xyz");
  sources[1] = plain(TextSource(folder / "b.txt"));
  CHECK(Cache(cache).tokenizer({}, sources, 0)->vocab_size() == 6);
  CHECK(folders(cache).size() == 1);  // the folder of the former text is gone
}

TEST_CASE("cache: each set of options has its own tokens") {
  const ScratchFolder folder;
  const TextSource files(folder.write("a.tsv", "0\t1\tx\n1\t0\ty\n2\t0\tz\n"));
  const std::vector<DocumentOptions> all{{.label_field = "1", .classes = 3}, {.label_field = "2", .classes = 2},
      {.label_field = "2", .classes = 3}, {.text_field = "1"}, {.text_field = "2"}, {},
      {.text_field = "1", .label_field = "2", .classes = 3}};
  for (size_t i = 0; i < all.size(); ++i) {
    DocumentOptions options = all[i];
    options.format = format_of(kTsv);
    CHECK(open_one({.files = files, .options = options}, bytes(), folder / "cache").tokens.classes() == options.classes);
    CHECK(folders(folder / "cache").size() == i + 1);
  }
}

TEST_CASE("cache: the words that label documents are found once") {
  const ScratchFolder folder;
  const Documents documents{
      TextSource(folder.write("a.tsv", "yes\tx\nno\ty\nyes\tz\n")), {.format = format_of(kTsv), .label_field = "1", .classes = 2}};
  const std::vector<std::string> words{"no", "yes"};
  CHECK(Cache(folder / "cache").labels(documents) == words);
  const int64_t before = bytes_read();
  CHECK(Cache(folder / "cache").labels(documents) == words);
  CHECK(bytes_read() - before < 4096);
}

TEST_CASE("cache: 40 MB are tokenised and read in little memory") {
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
