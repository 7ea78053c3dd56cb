// The cache of tokens: reused, replaced when stale, shared with other programs, and never trusted blindly.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>

#include "data/text/split.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokens/token_file.h"
#include "data/tokens/token_storage.h"
#include "tests/data/tokens/token_files.h"

using namespace ricci;
using namespace test_data;

TEST_CASE("token file: what an interrupted tokenisation left is removed by the next one") {
  const ScratchFolder folder;
  folder.write("cache/.train-byte-256-0.tokens.tmp-1", "half");
  TokenFile::open(TextSource(folder.write("a.txt", "some text")), ByteTokenizer(), folder / "cache");
  CHECK(only_file(folder / "cache").ends_with(".tokens"));
}

TEST_CASE("token file: a second run reads the first one's file, parts have their own") {
  const ScratchFolder folder;
  const std::string cache = folder / "deep/cache";
  const TextSource source(folder.write("a.txt", mixed_text(1000, 12)));
  const Observer observer;
  const TokenFile first = TokenFile::open(source, observer, cache);
  CHECK(contains(first.origin(), "tokens written to " + only_file(cache)));
  const int64_t once = observer.bytes;
  const TokenFile again = TokenFile::open(source, observer, cache);
  CHECK(observer.bytes == once);
  CHECK(again.origin() == format_message("a.txt: {} tokens read from {}", {once, only_file(cache)}));
  const TokenFile part = TokenFile::open(source.part("train", 0, 100), observer, cache);
  CHECK(part.size() == 100);
  CHECK(part.name() == "a.txt (train)");
  CHECK(std::distance(std::filesystem::directory_iterator(cache), {}) == 2);
}

TEST_CASE("token file: a changed text, cut or tokenizer replaces the file") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "abcabc");
  const TokenFile old = TokenFile::open(TextSource(path), CharTokenizer("abc"), folder / "cache");
  const auto reopen = [&](const TextSource& source, const char* characters) {
    return TokenFile::open(source, CharTokenizer(characters), folder / "cache");
  };
  TokenFile tokens = reopen(TextSource(path), "cba");
  CHECK(contains(tokens.origin(), "made again because of the old file: it was made by another tokenizer"));
  CHECK(read_all(tokens) == std::vector<int64_t>{2, 1, 0, 2, 1, 0});
  folder.write("a.txt", "cc");
  tokens = reopen(TextSource(path), "cba");
  CHECK(contains(tokens.origin(), "made again because of the old file: the text or the cut changed"));
  CHECK(read_all(tokens) == std::vector<int64_t>{0, 0});
  only_file(folder / "cache");
  CHECK(read_all(old) == std::vector<int64_t>{0, 1, 2, 0, 1, 2});  // who had it open keeps it
  reopen(TextSource(path).part("train", 0, 1), "cba");
  CHECK(reopen(TextSource(path).part("train", 0, 2), "cba").size() == 2);
}

TEST_CASE("token file: what another program puts in its place is not read") {
  const ScratchFolder folder;
  const std::string text = mixed_text(1000, 14);
  const TextSource source(folder.write("a.txt", text));
  const std::string cache = folder / "cache";
  const TokenFile first = TokenFile::open(source, ByteTokenizer(), cache);
  const std::string path = only_file(cache), good = read_file(path);
  // A description that fits itself, of tokens that are not of this width.
  TokenTrailer trailer;
  std::memcpy(&trailer, good.data() + good.size() - sizeof trailer, sizeof trailer);
  for (const uint32_t width : {0u, 3u, 8u, 0x80000000u}) {
    trailer.bytes_per_token = width;
    trailer.own_hash = trailer.hash();
    std::ofstream(path, std::ios::binary) << good.substr(0, good.size() - sizeof trailer)
                                          << std::string(reinterpret_cast<const char*>(&trailer), sizeof trailer);
    const TokenFile tokens = TokenFile::open(source, ByteTokenizer(), cache);
    CHECK(contains(tokens.origin(), "made again because of the old file: its description is damaged"));
    CHECK(read_all(tokens) == ByteTokenizer().encode(text));
  }
  std::filesystem::remove(path);
  std::filesystem::create_symlink(folder.write("foreign", good), path);
  const TokenFile beside = TokenFile::open(source, ByteTokenizer(), cache);
  CHECK(contains(beside.origin(), "in a temporary file, because cannot write " + path + ": it is a symbolic link"));
  CHECK(read_all(beside) == ByteTokenizer().encode(text));
  CHECK(read_file(folder / "foreign") == good);
}

TEST_CASE("token file: two writers at once, whatever their process numbers, each have their own tokens") {
  const ScratchFolder folder;
  const std::string cache = folder / "cache";
  const std::string text = mixed_text(3000, 15);
  const TextSource source(folder.write("a.txt", text));
  // While one tokenises, another one does all of it, and puts its file in place.
  class Meanwhile final : public Tokenizer {
   public:
    explicit Meanwhile(std::function<void()> other) : other_(std::move(other)) {}
    std::string name() const override { return "byte"; }
    int64_t vocab_size() const override { return 256; }
    std::string to_json() const override { return ByteTokenizer().to_json(); }
    size_t complete_prefix(std::string_view piece) const override { return piece.size(); }
    void append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const override {
      if (offset == 0) other_();
      ByteTokenizer().append_ids(piece, offset, ids);
    }

   protected:
    void append_text(int64_t, DecodeState&, std::string&) const override {}

   private:
    std::function<void()> other_;
  };
  std::optional<TokenFile> inner;
  const TokenFile outer = TokenFile::open(source, Meanwhile([&] { inner = TokenFile::open(source, ByteTokenizer(), cache); }), cache);
  CHECK(read_all(*inner) == ByteTokenizer().encode(text));
  CHECK(read_all(outer) == ByteTokenizer().encode(text));
  CHECK(contains(TokenFile::open(source, ByteTokenizer(), cache).origin(), "read from " + only_file(cache)));
}

TEST_CASE("token file: a text with the same size and time but other bytes is noticed") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "abcabc");
  const auto time = std::filesystem::last_write_time(path);
  TokenFile::open(TextSource(path), CharTokenizer("abc"), folder / "cache");
  folder.write("a.txt", "cbacba");
  std::filesystem::last_write_time(path, time);
  const TokenFile tokens = TokenFile::open(TextSource(path), CharTokenizer("abc"), folder / "cache");
  CHECK(contains(tokens.origin(), "made again because of the old file: the text or the cut changed"));
  CHECK(read_all(tokens) == std::vector<int64_t>{2, 1, 0, 2, 1, 0});
  std::filesystem::last_write_time(path, time + std::chrono::hours(1));  // while the time alone means nothing
  CHECK(contains(TokenFile::open(TextSource(path), CharTokenizer("abc"), folder / "cache").origin(), "read from"));
}

TEST_CASE("token file: a cache folder of another user is not used, one that was open to others is closed") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", "abc"));
  std::filesystem::create_directory(folder / "cache");
  std::filesystem::permissions(folder / "cache", std::filesystem::perms::all);
  CHECK(contains(TokenFile::open(source, ByteTokenizer(), folder / "cache").origin(), "written to"));
  CHECK((std::filesystem::status(folder / "cache").permissions() & std::filesystem::perms::others_write) == std::filesystem::perms::none);
  if (::geteuid() != 0) return;
  REQUIRE(::chown((folder / "cache").c_str(), 12345, 12345) == 0);
  const TokenFile tokens = TokenFile::open(source, ByteTokenizer(), folder / "cache");
  CHECK(contains(tokens.origin(), "in a temporary file, because folder " + folder / "cache" + ": it belongs to another user"));
  CHECK(read_all(tokens) == std::vector<int64_t>{97, 98, 99});
}

TEST_CASE("token file: without a cache folder the tokens lie in a temporary file, and the log says why") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", "abc"));
  const std::string file = folder.write("file", "not a folder");
  const TokenFile blocked = TokenFile::open(source, ByteTokenizer(), file + "/cache");
  CHECK(contains(blocked.origin(), "a.txt: 3 tokens in a temporary file, because " + file + ": cannot be made: a file is in its place"));
  CHECK(read_all(blocked) == std::vector<int64_t>{97, 98, 99});
  const TokenFile forbidden = TokenFile::open(source, ByteTokenizer(), "/proc");  // not even root can write here
  CHECK(contains(forbidden.origin(), "a.txt: 3 tokens in a temporary file, because "));
  CHECK(read_all(forbidden) == std::vector<int64_t>{97, 98, 99});
  const TokenFile without = TokenFile::open(source, ByteTokenizer(), "");
  CHECK(without.origin() == "a.txt: 3 tokens in a temporary file, because there is no cache folder");
  CHECK(read_all(without) == std::vector<int64_t>{97, 98, 99});
  const ScopedVariable elsewhere("TMPDIR", "/nonexistent");  // there is /tmp
  CHECK(read_all(TokenFile::open(source, ByteTokenizer(), "")) == std::vector<int64_t>{97, 98, 99});
}

TEST_CASE("token file: the default cache folder") {
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
