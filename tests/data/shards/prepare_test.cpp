// Preparing a corpus: the same bytes for any number of threads and any interruption, and labels beside documents.
#include "data/shards/prepare.h"

#include <doctest/doctest.h>

#include "core/cpu/parallel.h"
#include "data/shards/shard.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "tests/data/shards/shard_files.h"

using namespace ricci;
using namespace test_data;

namespace {

// Everything in a folder but what only its user sees.
std::string bytes_of(const std::string& folder) {
  std::string all;
  for (const std::string& name : Folder(folder).names()) all += name + ":" + read_file(folder + "/" + name) + "\n";
  return all;
}

std::string long_lines(int count) {
  Sequence sequence(8);
  std::string text;
  for (int i = 0; i < count; ++i) text += mixed_text(sequence.below(i % 100 == 0 ? 200'000 : 300), static_cast<uint64_t>(i)) + "<end>";
  return text;
}

struct Corpus {
  ScratchFolder folder;
  TextSource files{folder.write("a.txt", long_lines(700)) + "," + folder.write("b.txt", "the end")};
  PrepareOptions options{.documents = {.documents = "<end>"}, .shard_tokens = 40'000};
  std::shared_ptr<const Tokenizer> tokenizer = char_tokenizer_of(files, options.documents);

  Prepared prepare(const std::string& name) const {
    make_folders(folder / name);
    return prepare_shards(files, *tokenizer, Folder(folder / name), options);
  }
};

}  // namespace

TEST_CASE("the shards do not depend on the number of threads") {
  const Corpus corpus;
  const int before = thread_count();
  std::string expected;
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    const Prepared made = corpus.prepare("t" + std::to_string(threads));
    CHECK(made.shards > 5);
    CHECK(made.documents > 600);
    CHECK(made.found == 0);
    const std::string bytes = bytes_of(corpus.folder / ("t" + std::to_string(threads)));
    if (expected.empty()) expected = bytes;
    CHECK(bytes == expected);
  }
  set_thread_count(before);
}

TEST_CASE("the error of the first document is told, whatever the number of threads") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += i % 100 == 99 ? "?\n" : "a\n";
  const TextSource source(folder.write("a.txt", text));
  const DocumentOptions lines{.documents = "line", .keep_line_ends = false};
  const CharTokenizer tokenizer("a");
  const int before = thread_count();
  for (const int threads : {1, 2, 5})
    for (int round = 0; round < 20; ++round) {
      set_thread_count(threads);
      const std::string name = std::to_string(threads) + "-" + std::to_string(round);
      make_folders(folder / name);
      const std::string expected =
          "a.txt: document 100: char tokenizer: '?' (U+003F) at byte 0 is not among the 1 characters of the vocabulary";
      CHECK(error_of([&] { prepare_shards(source, tokenizer, Folder(folder / name), {.documents = lines}); }) == expected);
    }
  set_thread_count(before);
}

TEST_CASE("what is missing or damaged is made again, and the rest kept") {
  const Corpus corpus;
  const Prepared made = corpus.prepare("whole");
  const std::string whole = corpus.folder / "whole", bytes = bytes_of(whole);
  for (int64_t kept = 0; kept <= made.shards; ++kept) {
    for (int64_t shard = kept; shard < made.shards; ++shard) std::filesystem::remove(whole + "/" + shard_name(shard));
    corpus.folder.write("whole/.shard-00001.tokens.tmp-0123456789abcdef", "what a killed program left");
    const Prepared again = corpus.prepare("whole");
    CHECK(again.found == kept);
    CHECK(again.tokens == made.tokens);
    CHECK(again.documents == made.documents);
    CHECK(again.text_bytes == made.text_bytes);
    CHECK(bytes_of(whole) == bytes);
  }
  std::filesystem::resize_file(whole + "/" + shard_name(3), 1000);
  CHECK(corpus.prepare("whole").found == 3);
  CHECK(bytes_of(whole) == bytes);
}

TEST_CASE("a folder with shards of something else is left alone") {
  Corpus corpus;
  corpus.prepare("whole");
  const std::string whole = corpus.folder / "whole", bytes = bytes_of(whole);
  const std::string message = whole + ": holds shards of other inputs, settings or tokenizer; name another folder, or remove it";
  corpus.options.shard_tokens = 50'000;
  CHECK(error_of([&] { corpus.prepare("whole"); }) == message);
  corpus.options.shard_tokens = 40'000;
  corpus.files = TextSource(corpus.folder / "a.txt");
  CHECK(error_of([&] { corpus.prepare("whole"); }) == message);
  CHECK(bytes_of(whole) == bytes);
  std::filesystem::remove(whole + "/" + shard_name(0));  // the other shards are still made of all files
  const std::string rest = bytes_of(whole);
  CHECK(error_of([&] { corpus.prepare("whole"); }) == message);
  CHECK(bytes_of(whole) == rest);
  corpus.folder.write("other/tokenizer.json", "{}");
  CHECK(contains(error_of([&] { corpus.prepare("other"); }), "other/tokenizer.json: another tokenizer is there"));
  const std::string ends = corpus.folder.write("ends.txt", "<end><end>"), end = corpus.folder.write("end.txt", "<end>");
  const auto without_tokens = [&](const std::vector<std::string>& paths) {
    return error_of([&] { prepare_shards(TextSource::of_paths(paths), ByteTokenizer(), Folder(corpus.folder.path()), corpus.options); });
  };
  CHECK(without_tokens({ends}) == "ends.txt: the inputs hold no tokens");
  CHECK(without_tokens({ends, end, end}) == "ends.txt and 2 more: the inputs hold no tokens");
}

TEST_CASE("two programs do not prepare shards in one folder") {
  const Corpus corpus;
  make_folders(corpus.folder / "whole");
  {
    const Folder other(corpus.folder / "whole");
    REQUIRE(other.lock());
    CHECK(error_of([&] { corpus.prepare("whole"); }) == corpus.folder / "whole" + ": another program is preparing shards in it");
    CHECK(other.names().empty());
  }
  CHECK(corpus.prepare("whole").found == 0);
}

TEST_CASE("labels come with their documents, each of which is in one shard") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 300; ++i)
    text +=
        std::to_string(i % 7) + "\t" + std::string(static_cast<size_t>(i == 100 ? 900'000 : 5 + i), static_cast<char>('a' + i % 7)) + "\n";
  const auto files = TextSource(folder.write("r.tsv", text));
  make_folders(folder / "r");
  const Prepared made = prepare_shards(files, ByteTokenizer(), Folder(folder / "r"),
      {.documents = {.format = DocumentFormat::tsv, .text_field = "2", .label_field = "1", .classes = 7}, .shard_tokens = 10'000});
  CHECK(made.documents == 300);
  const ShardedTokens tokens = ShardedTokens::open(folder / "r", ByteTokenizer());
  CHECK(tokens.classes() == 7);
  int64_t count = 0;
  for (int64_t shard = 0; shard < tokens.shards(); ++shard) {
    for (int64_t i = 0; i < tokens.documents(shard); ++i, ++count) {
      const auto [first, end] = tokens.document(shard, i);
      const std::string document = text_of(tokens, first, end);
      CHECK(document == std::string(document.size(), static_cast<char>('a' + tokens.label(shard, i))));
    }
  }
  CHECK(count == 300);
  CHECK(tokens.shards() > 4);
}

TEST_CASE("<eos> behind every document, and behind every line") {
  const ScratchFolder folder;
  const TextSource text(folder.write("a.txt", "b a b\na a\n\nb"));
  const auto ids_with = [&](Eos after, const DocumentOptions& options) {
    const auto tokenizer = train_tokenizer(*find_tokenizer_kind("word"), text, {}, {.after = after});
    const std::string name = std::string(name_of(after)) + options.documents;
    make_folders(folder / name);
    prepare_shards(text, *tokenizer, Folder(folder / name), {.documents = options});
    const Tokens tokens = ShardedTokens::open(folder / name, *tokenizer);
    std::vector<int64_t> ids(static_cast<size_t>(tokens.size()));
    tokens.read(0, ids);
    const int64_t eos = tokenizer->find("<eos>");
    std::string shape;
    for (const int64_t id : ids) shape += id == eos ? '.' : 'w';
    return shape;
  };
  CHECK(ids_with(Eos::line, {}) == "www.ww..w.");
  CHECK(ids_with(Eos::document, {}) == "wwwwww.");
  CHECK(ids_with(Eos::document, {.documents = "line", .keep_line_ends = false}) == "www.ww..w.");
}
