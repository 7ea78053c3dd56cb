// Token files against direct encoding; the cache is reused, replaced when stale or damaged, and never trusted blindly.
#include "data/tokens/token_file.h"

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
#include "data/tokens/token_storage.h"
#include "tests/data/tokens/token_files.h"

using namespace ricci;
using namespace test_data;

TEST_CASE("token file: the ids of the text, read anywhere") {
  const ScratchFolder folder;
  const std::string text = mixed_text(300'007, 11);
  const TextSource source(write_compressed(folder, "a.gz", text, ARCHIVE_FILTER_GZIP));
  const CharTokenizer tokenizer = CharTokenizer::of_text(source);
  const TokenFile tokens = TokenFile::open(source, tokenizer, folder / "cache");
  const std::vector<int64_t> expected = tokenizer.encode(text);
  CHECK(tokens.size() == 300'007);
  CHECK(tokens.vocab_size() == tokenizer.vocab_size());
  CHECK(tokens.text_bytes() == static_cast<int64_t>(text.size()));
  CHECK(read_all(tokens) == expected);
  CHECK(std::filesystem::file_size(only_file(folder / "cache")) == 80 + 2 * expected.size());
  std::vector<int64_t> some(7);
  for (const int64_t first : {0, 1, 131'071, 300'000}) {
    tokens.read(first, some);
    CHECK(std::equal(some.begin(), some.end(), expected.begin() + first));
  }
  tokens.read(300'007, {});
  CHECK(error_of([&] { tokens.read(300'001, some); }) == "a.gz: tokens 300001 to 300008 are not in a text of 300007 tokens");
  CHECK(error_of([&] { tokens.read(-1, some); }) == "a.gz: tokens -1 to 6 are not in a text of 300007 tokens");
}

TEST_CASE("token file: ids of a program, two or four bytes wide") {
  for (const int64_t vocab : {65'536, 65'537, 200'000}) {
    const std::vector<int64_t> ids = {0, 1, vocab - 1, 65'535, 7};
    CHECK(read_all(TokenFile::of_ids(ids, vocab)) == ids);
  }
  const std::vector<int64_t> wrong = {0, 5, -1};
  CHECK(error_of([&] { TokenFile::of_ids(wrong, 5); }) == "token file: id 5 at index 1 is outside the vocabulary of 5");
  CHECK(error_of([&] { TokenFile::of_ids(wrong, 6); }) == "token file: id -1 at index 2 is outside the vocabulary of 6");
}

TEST_CASE("token file: the hash is that of the ids alone") {
  const auto hash_of = [](const std::vector<int64_t>& ids, int64_t vocab) { return TokenFile::of_ids(ids, vocab).hash(); };
  const std::vector<int64_t> ids = {3, 1, 4, 1, 5};
  CHECK(hash_of(ids, 10) == hash_of(ids, 20));
  CHECK(hash_of(ids, 10) != hash_of({3, 1, 1, 4, 5}, 10));
  CHECK(hash_of(ids, 10) != hash_of({3, 1, 4, 1}, 10));
  const ScratchFolder folder;
  const TextSource text(folder.write("a.txt", "\3\1\4\1\5"));
  CHECK(TokenFile::open(text, ByteTokenizer(), folder / "cache").hash() == hash_of(ids, 256));  // written
  CHECK(TokenFile::open(text, ByteTokenizer(), folder / "cache").hash() == hash_of(ids, 256));  // read again
  CHECK(TokenFile::open(text, ByteTokenizer(), "").hash() == hash_of(ids, 256));
}

TEST_CASE("token file: a damaged file is noticed and made again") {
  const ScratchFolder folder;
  const std::string text = mixed_text(5000, 13);
  const TextSource source(folder.write("a.txt", text));
  const ByteTokenizer tokenizer;
  const auto open = [&] { return TokenFile::open(source, tokenizer, folder / "cache"); };
  open();
  const std::string path = only_file(folder / "cache");
  const std::string good = read_file(path);
  const auto damage = [&](std::string bytes, const std::string& problem) {
    std::ofstream(path, std::ios::binary) << bytes;
    const TokenFile tokens = open();
    CAPTURE(tokens.origin());
    CHECK(contains(tokens.origin(), "written to " + path + ", made again because of the old file: " + problem));
    CHECK(read_all(tokens) == tokenizer.encode(text));
    CHECK(read_file(only_file(folder / "cache")) == good);
  };
  const size_t size = good.size(), trailer = size - 80;
  damage(good.substr(0, size - 1), "it was cut or continued, or is not a token file");
  damage(good.substr(0, size / 2), "it was cut or continued, or is not a token file");
  damage(good + "x", "it was cut or continued, or is not a token file");
  damage(good.substr(0, 79), "it has only 79 bytes");
  damage("", "it has only 0 bytes");
  damage(good.substr(2), format_message("it has {} bytes instead of {}", {size - 2, size}));
  damage(good.substr(0, trailer) + "\x01" + good.substr(trailer + 1), "it is of another version of this program");
  damage(good.substr(0, trailer + 24) + "\x01" + good.substr(trailer + 25), "its description is damaged");
  for (const size_t at : {size_t{0}, trailer / 2, trailer - 1}) {  // a token that the vocabulary has as well
    std::string other = good;
    other[at] = static_cast<char>(other[at] == 0 ? 1 : 0);
    if (at % 2 == 0) damage(other, "its tokens are damaged");
  }
  damage(std::string(trailer, '\0') + good.substr(trailer), "its tokens are damaged");
}

TEST_CASE("token file: damage while it is in use is an error, not a crash") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", std::string(100, 'a')));
  const TokenFile tokens = TokenFile::open(source, CharTokenizer("a"), folder / "cache");
  const std::string path = only_file(folder / "cache");
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(2 * 30).write("\x09", 1);
  CHECK(error_of([&] { read_all(tokens); }) == "a.txt: the token file is damaged, id 9 at index 30 is outside the vocabulary of 1");
  std::filesystem::resize_file(path, 2 * 99);
  CHECK(error_of([&] { read_all(tokens); }) == "a.txt: the token file was cut while it was in use, it has no 100 tokens any more");
}

TEST_CASE("token file: an error on the way names the text and leaves nothing behind") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", "abc-abc"));
  CHECK(error_of([&] { TokenFile::open(source, CharTokenizer("abc"), folder / "cache"); }) ==
        "a.txt: char tokenizer: '-' (U+002D) at byte 3 is not among the 3 characters of the vocabulary");
  CHECK(std::filesystem::is_empty(folder / "cache"));
  CHECK(contains(error_of([&] { TokenFile::open(source.part("validation", 2, 7), CharTokenizer("abc"), ""); }),
      "a.txt (validation): char tokenizer: '-' (U+002D) at byte 3 "));
  const Failing failing;
  CHECK(error_of([&] { TokenFile::open(source, failing, folder / "cache"); }) == "a.txt: no");
  CHECK(failing.attempts == 1);  // an error of the text is no reason to try another place
}

TEST_CASE("token file: a text that grows after it was looked at is not cached") {
  const ScratchFolder folder;
  const TextSource source(folder.write("a.txt", "abc"));
  folder.write("a.txt", "abcd");
  CHECK(error_of([&] { TokenFile::open(source, ByteTokenizer(), folder / "cache"); }) ==
        "data: " + folder / "a.txt" + " changed while it was in use: it had 3 bytes and now has 4, or others");
  CHECK(std::filesystem::is_empty(folder / "cache"));
}

TEST_CASE("token file: 64 MB are tokenised and read in a few MB of memory") {
  const ScratchFolder folder;
  {
    std::ofstream out(folder / "large", std::ios::binary);
    for (int i = 0; i < 64; ++i) out << std::string(1'000'000, static_cast<char>('a' + i % 26));
  }
  const TextSource source(folder / "large");
  const Observer observer;
  const int64_t before = resident_bytes();
  const TokenFile tokens = TokenFile::open(source, observer, folder / "cache");
  std::vector<int64_t> ids(62'500);
  int64_t most = observer.most, wrong = 0;
  for (int64_t first = 0; first < tokens.size(); first += static_cast<int64_t>(ids.size())) {
    tokens.read(first, ids);
    wrong += std::count(ids.begin(), ids.end(), 'a' + first / 1'000'000 % 26) != 62'500;
    most = std::max(most, resident_bytes());
  }
  CHECK(tokens.size() == 64'000'000);
  CHECK(wrong == 0);
  CHECK(most - before < 8'000'000 + kSanitizerBytes);
}
