// Preparing a corpus: the same bytes for any thread count and any interruption. Shards as one corpus: its tokens, documents and labels, and
// the errors of shards that belong to different corpora, were cut or altered.
#include <doctest/doctest.h>

#include <cstring>

#include "core/files/checksum.h"
#include "data/shards/prepare.h"
#include "data/shards/shard.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "tests/data/ids.h"
#include "tests/data/shards/shard_files.h"

using namespace ricci;
using namespace test_data;

namespace {

std::string numbered_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "line number " + std::to_string(i * i) + "\n";
  return text;
}

std::string error_of_folder(const std::string& folder) {
  return error_of([&] {
    const Tokens tokens = Tokens::open(folder, ByteTokenizer());
    text_of(tokens, 0, tokens.size());
  });
}

// Replaces some bytes of a file.
void alter(const std::string& path, size_t at, const std::string& bytes) {
  std::string text = read_file(path);
  std::ofstream(path, std::ios::binary) << text.replace(at, bytes.size(), bytes);
}

// Everything in a folder that other users can see.
std::string bytes_of(const std::string& folder) {
  std::string all;
  for (const std::string& name : names_in(folder)) all += name + ":" + read_file(folder + "/" + name) + "\n";
  return all;
}

std::string long_lines(int count) {
  Sequence sequence(8);
  std::string text;
  for (int i = 0; i < count; ++i) text += mixed_text(sequence.below(i % 100 == 0 ? 100'000 : 300), static_cast<uint64_t>(i)) + "<end>";
  return text;
}

struct Corpus {
  ScratchFolder folder;
  Documents documents{
      .files = TextSource({folder.write("a.txt", long_lines(400)), folder.write("b.txt", "the end")}), .options = {.documents = "<end>"}};
  int64_t shard_tokens = 15'000;
  std::shared_ptr<const Tokenizer> tokenizer = characters_of(documents);

  Prepared prepare(const std::string& name) const {
    make_folders(folder / name);
    return prepare_shards(documents, tokenizer, folder / name,
        {.shard_tokens = shard_tokens, .source_hash = hash_inputs(documents, *tokenizer, shard_tokens)});
  }
};

}  // namespace

TEST_CASE("the tokens of all shards are those of the text, and the documents its lines") {
  const ScratchFolder folder;
  const std::string text = numbered_lines(500), path = prepared(folder, "lines", text, 1000);
  const Tokens tokens = Tokens::open(path, ByteTokenizer());
  CHECK(tokens.size() == static_cast<int64_t>(text.size()));
  CHECK(tokens.vocab_size() == 256);
  CHECK(tokens.tokenizer_hash() == ByteTokenizer().hash());
  CHECK(tokens.name() == "lines");
  CHECK(tokens.shards() > 5);
  CHECK(text_of(tokens, 0, tokens.size()) == text);
  CHECK(text_of(tokens, 1234, 5678) == text.substr(1234, 5678 - 1234));
  std::string joined;
  for (int64_t shard = 0; shard < tokens.shards(); ++shard) {
    for (int64_t i = 0; i < tokens.documents(shard); ++i) {
      const auto [first, end] = tokens.document(shard, i);
      CHECK(text.substr(static_cast<size_t>(end) - 1, 1) == "\n");
      joined += text_of(tokens, first, end);
    }
  }
  CHECK(joined == text);
  CHECK(error_of([&] { text_of(tokens, 0, tokens.size() + 1); }) ==
        format_message("lines: tokens 0 to {} are outside the text of {} tokens", {tokens.size() + 1, tokens.size()}));
}

TEST_CASE("shards are in the order of their numbers, also where their names have more digits") {
  const ScratchFolder folder;
  const std::string text = numbered_lines(500), path = prepared(folder, "lines", text, 1000);
  const uint64_t hash = Tokens::open(path, ByteTokenizer()).hash();
  CHECK(shard_name(99'999) > shard_name(100'000));
  std::filesystem::rename(path + "/" + shard_name(0), path + "/" + shard_name(99'999));
  std::filesystem::rename(path + "/" + shard_name(1), path + "/" + shard_name(100'000));
  const Tokens tokens = Tokens::open(path, ByteTokenizer());
  CHECK(text_of(tokens, 0, tokens.size()) == text);
  CHECK(tokens.hash() == hash);
}

TEST_CASE("a corpus is divided between two documents") {
  const ScratchFolder folder;
  const std::string text = numbered_lines(500);
  const Tokens whole = Tokens::open(prepared(folder, "lines", text, 1000), ByteTokenizer());
  for (const double fraction : {0.002, 0.3, 0.5, 0.9, 0.998}) {
    const auto [train, validation] = whole.split(fraction);
    CHECK(text_of(train, 0, train.size()) + text_of(validation, 0, validation.size()) == text);
    CHECK(text_of(train, train.size() - 1, train.size()) == "\n");
    int64_t documents = 0;
    for (int64_t shard = 0; shard < train.shards(); ++shard) documents += train.documents(shard);
    CHECK(documents == static_cast<int64_t>(500 * fraction));
    CHECK(train.document(train.shards() - 1, train.documents(train.shards() - 1) - 1).end == train.size());
    CHECK(validation.document(0, 0).first == 0);
    CHECK(train.hash() != validation.hash());
    CHECK(train.name() == "lines (train)");
  }
  CHECK(error_of([&] { whole.split(0.001); }) ==
        "lines: a training fraction of 0.001 leaves no documents for training or validation; set validation=...");
}

TEST_CASE("shards of llm.c: u16 and u32, one file or a folder, blocks instead of documents") {
  const ScratchFolder folder;
  const CharTokenizer tokenizer("abcdefgh");
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 5000; ++i) ids.push_back(i * i % 8);
  folder.write("gpt2/train_1.bin", llmc_shard(20240520, 1, ids, 2));
  folder.write("gpt2/train_2.bin", llmc_shard(20240520, 1, {7, 6}, 2));
  const std::string llama = folder.write("llama.bin", llmc_shard(20240801, 7, ids, 4));
  CHECK(names_shards(folder / "gpt2"));
  CHECK(names_shards(llama));
  CHECK(!names_shards(folder.write("a.txt", "text")));
  for (const auto& [path, expected] : {std::pair{folder / "gpt2", int64_t{5002}}, {llama, int64_t{5000}}}) {
    const Tokens tokens = Tokens::open(path, tokenizer);
    CHECK(tokens.size() == expected);
    CHECK(tokens.tokenizer_hash() == 0);
    std::vector<int64_t> read(5000);
    tokens.read(0, read);
    CHECK(read == ids);
    CHECK(tokens.documents(0) == 2);
    CHECK(tokens.document(0, 1).first == 4096);
    CHECK(tokens.document(0, 1).end == 5000);
  }
  CHECK(error_of([&] { text_of(Tokens::open(llama, CharTokenizer("abc")), 0, 5); }) ==
        llama + ": id 4 at position 2 is outside the vocabulary of 3");
  const std::string cut = folder.write("cut.bin", llmc_shard(20240520, 1, {1, 2, 3}, 2, 5));
  CHECK(error_of([&] { Tokens::open(cut, tokenizer); }) == cut + ": the shard has 1030 bytes, expected 1034; it was cut short");
  const std::string version = folder.write("version.bin", llmc_shard(20240520, 2, {1, 2, 3}, 2));
  CHECK(error_of([&] { Tokens::open(version, tokenizer); }) == version + ": the version of the llm.c shard is 2, expected 1");
}

TEST_CASE("a shard of llm.c next to a text is neither a corpus of shards nor one of texts") {
  const ScratchFolder folder;
  const CharTokenizer tokenizer("abcdefgh");
  folder.write("mixed/b.bin", llmc_shard(20240520, 1, {1, 2, 3}, 2));
  folder.write("mixed/.hidden", "text");
  CHECK(names_shards(folder / "mixed"));
  CHECK(Tokens::open(folder / "mixed", tokenizer).size() == 3);
  folder.write("mixed/more/c.txt", "text");
  CHECK(error_of([&] { names_shards(folder / "mixed"); }) ==
        folder / "mixed" + ": b.bin is a shard, but more is not; put shards into a separate folder");
  const std::string text = folder.write("mixed/a.txt", "text");
  CHECK(error_of([&] { names_shards(folder / "mixed"); }) ==
        folder / "mixed" + ": b.bin is a shard, but a.txt is not; put shards into a separate folder");
  CHECK(error_of([&] { Tokens::open(folder / "mixed", tokenizer); }) == text + ": is not a shard");
  CHECK(!names_shards(folder / "mixed/more"));
}

TEST_CASE("shards that were cut, continued or altered are named") {
  const ScratchFolder folder;
  const std::string path = prepared(folder, "lines", numbered_lines(200), 1000), shard = path + "/" + shard_name(1),
                    sound = read_file(shard);
  const auto size = static_cast<int64_t>(sound.size());
  const auto restore = [&] { std::ofstream(shard, std::ios::binary) << sound; };
  CHECK(error_of_folder(path) == "no error");

  std::filesystem::resize_file(shard, sound.size() - 1);
  CHECK(error_of_folder(path) == format_message("{}: the shard has {} bytes, expected {}; it was cut short", {shard, size - 1, size}));
  std::filesystem::resize_file(shard, 100);
  CHECK(error_of_folder(path) == shard + ": the shard is cut short inside its header");
  restore();
  std::ofstream(shard, std::ios::binary | std::ios::app) << "x";
  CHECK(error_of_folder(path) == format_message("{}: the shard has {} bytes, expected {}; it was extended", {shard, size + 1, size}));
  restore();
  alter(shard, 40, "x");
  CHECK(error_of_folder(path) == shard + ": the header of the shard is damaged");
  restore();
  for (const size_t at : {sizeof(ShardHeader), sound.size() / 2, sound.size() - 1}) {  // an id, the index
    alter(shard, at, std::string(1, static_cast<char>(sound[at] ^ 1)));
    CHECK(error_of_folder(path) == shard + ": the shard was altered or damaged; its checksum is wrong");
    restore();
  }
  alter(shard, 0, "RICCIXXX");
  CHECK(error_of_folder(path) == shard + ": is not a shard");
  restore();
  CHECK(error_of_folder(path) == "no error");
}

TEST_CASE("a shard that is cut while it is in use is an error, not the end") {
  const ScratchFolder folder;
  const std::string path = prepared(folder, "lines", numbered_lines(2000));
  const Tokens tokens = Tokens::open(path, ByteTokenizer());
  text_of(tokens, 0, 100);
  std::filesystem::resize_file(path + "/" + shard_name(0), 1000);
  CHECK(error_of([&] { text_of(tokens, 0, tokens.size()); }) == path + "/shard-00000.tokens: the shard was cut short while it was in use");
}

TEST_CASE("shards that do not make one corpus") {
  const ScratchFolder folder;
  const std::string a = prepared(folder, "a", numbered_lines(200), 1000), b = prepared(folder, "b", numbered_lines(300), 1000);
  const auto place = [](const std::string& path, int64_t number) { return path + "/" + shard_name(number); };
  CHECK(error_of([&] { Tokens::open(a, CharTokenizer("abc")); }) ==
        a + ": the shards were made by a different tokenizer of 256 tokens, not by the char tokenizer of 3 tokens");
  std::filesystem::copy_file(place(b, 1), place(a, 1), std::filesystem::copy_options::overwrite_existing);
  CHECK(error_of_folder(a) == place(a, 1) + ": the shard belongs to a different corpus than " + place(a, 0));

  const Documents lines{.files = TextSource(folder / "a.txt"), .options = {.documents = "line"}};
  prepare(folder, "chars", lines, characters_of(lines), 1000);
  std::filesystem::copy_file(place(folder / "chars", 1), place(a, 1), std::filesystem::copy_options::overwrite_existing);
  CHECK(error_of_folder(a) == place(a, 1) + ": the shard was made by a different tokenizer than " + place(a, 0));
  std::filesystem::remove(place(a, 1));
  CHECK(error_of_folder(a) == a + ": shard shard-00001.tokens of the corpus is missing");

  int64_t last = 0;
  while (std::filesystem::exists(place(b, last + 1))) ++last;
  std::filesystem::remove(place(b, last));
  CHECK(error_of_folder(b) == b + ": the last shard is missing; run ricci prepare again to finish");
  CHECK(error_of([&] { Tokens::open(folder / "none", ByteTokenizer()); }) ==
        "cannot read " + (folder / "none") + ": No such file or directory");
}

TEST_CASE("reading a large corpus does not fill the memory") {
  const ScratchFolder folder;
  std::string text;
  Sequence sequence(5);
  while (text.size() < 24'000'000) text += std::string(100 + sequence.below(5000), static_cast<char>('a' + sequence.below(26))) + "\n";
  const Tokens tokens = Tokens::open(prepared(folder, "large", text, 2 << 20), ByteTokenizer());  // 48 MB of ids
  text = {};
  std::vector<int64_t> ids(1000);
  tokens.read(0, ids);
  const int64_t before = resident_bytes();
  int64_t most = 0;
  for (int i = 0; i < 5'000; ++i) {
    tokens.read(static_cast<int64_t>(sequence.below(static_cast<uint64_t>(tokens.size() - 1000))), ids);
    if (i % 100 == 0) most = std::max(most, resident_bytes() - before);
  }
  CHECK(most < 20'000'000 + kSanitizerBytes);
}

TEST_CASE("the shards do not depend on the number of threads") {
  const Corpus corpus;
  std::string expected;
  for (const int threads : {1, 2, 5}) {
    const Threads count(threads);
    const Prepared made = corpus.prepare("t" + std::to_string(threads));
    CHECK(made.shards > 5);
    CHECK(made.documents > 350);
    CHECK(made.found == 0);
    const std::string bytes = bytes_of(corpus.folder / ("t" + std::to_string(threads)));
    if (expected.empty()) expected = bytes;
    CHECK(bytes == expected);
  }
}

TEST_CASE("the error of the first document is told, whatever the number of threads") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += i % 100 == 99 ? "?\n" : "a\n";
  const TextSource source(folder.write("a.txt", text));
  const Documents lines{.files = source, .options = {.documents = "line", .keep_line_ends = false}};
  const auto tokenizer = std::make_shared<CharTokenizer>("a");
  for (const int threads : {1, 2, 5})
    for (int round = 0; round < 5; ++round) {
      const Threads count(threads);
      const std::string name = std::to_string(threads) + "-" + std::to_string(round);
      const std::string expected =
          "a.txt: document 100: char tokenizer: '?' (U+003F) at byte 0 is not among the 1 characters of the vocabulary";
      CHECK(error_of([&] { prepare(folder, name, lines, tokenizer); }) == expected);
    }
}

TEST_CASE("missing and damaged shards are made again, and the rest kept") {
  const Corpus corpus;
  const Prepared made = corpus.prepare("whole");
  const std::string whole = corpus.folder / "whole", bytes = bytes_of(whole);
  for (int64_t kept = 0; kept <= made.shards; ++kept) {
    for (int64_t shard = kept; shard < made.shards; ++shard) std::filesystem::remove(whole + "/" + shard_name(shard));
    corpus.folder.write("whole/.shard-00001.tokens.tmp-0123456789abcdef", "left by a killed program");
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

TEST_CASE("a folder with shards of something else is not touched") {
  Corpus corpus;
  corpus.prepare("whole");
  const std::string whole = corpus.folder / "whole", bytes = bytes_of(whole);
  const std::string message = whole + ": contains shards with different inputs, settings or tokenizers; choose another folder";
  corpus.shard_tokens = 30'000;
  CHECK(error_of([&] { corpus.prepare("whole"); }) == message);
  corpus.shard_tokens = 15'000;
  corpus.documents.files = TextSource(corpus.folder / "a.txt");
  CHECK(error_of([&] { corpus.prepare("whole"); }) == message);
  CHECK(bytes_of(whole) == bytes);
  std::filesystem::remove(whole + "/" + shard_name(0));  // the other shards still contain all files
  const std::string rest = bytes_of(whole);
  CHECK(error_of([&] { corpus.prepare("whole"); }) == message);
  CHECK(bytes_of(whole) == rest);
  corpus.folder.write("other/tokenizer.json", "{}");
  CHECK(contains(error_of([&] { corpus.prepare("other"); }), "other/tokenizer.json: a different tokenizer already exists here"));
  const std::string ends = corpus.folder.write("ends.txt", "<end><end>"), end = corpus.folder.write("end.txt", "<end>");
  const auto without_tokens = [&](const std::vector<std::string>& paths) {
    return error_of([&] { prepare(corpus.folder, "none", {.files = TextSource(paths), .options = {.documents = "<end>"}}); });
  };
  CHECK(without_tokens({ends}) == "ends.txt: the inputs contain no tokens");
  CHECK(without_tokens({ends, end, end}) == "ends.txt and 2 more: the inputs contain no tokens");
}

TEST_CASE("two programs do not prepare shards in one folder") {
  const Corpus corpus;
  make_folders(corpus.folder / "whole");
  {
    const std::optional<FolderLock> other = FolderLock::take(corpus.folder / "whole");
    REQUIRE(other);
    CHECK(error_of([&] { corpus.prepare("whole"); }) == corpus.folder / "whole" + ": another program is preparing shards in this folder");
    CHECK(names_in(corpus.folder / "whole").empty());
  }
  CHECK(corpus.prepare("whole").found == 0);
}

TEST_CASE("<eos> behind every document, and behind every line") {
  const ScratchFolder folder;
  const TextSource text(folder.write("a.txt", "b a b\na a\n\nb"));
  const auto ids_with = [&](Eos after, const DocumentOptions& options) {
    const auto tokenizer = train("word", {.files = text}, {}, after);
    const std::string name = std::string(name_of(after)) + options.documents;
    const Tokens tokens = Tokens::open(prepare(folder, name, {.files = text, .options = options}, tokenizer), *tokenizer);
    const int64_t eos = tokenizer->find("<eos>");
    std::string shape;
    for (const int64_t id : read_all(tokens)) shape += id == eos ? '.' : 'w';
    return shape;
  };
  CHECK(ids_with(Eos::line, {}) == "www.ww..w.");
  CHECK(ids_with(Eos::document, {}) == "wwwwww.");
  CHECK(ids_with(Eos::document, {.documents = "line", .keep_line_ends = false}) == "www.ww..w.");
}

namespace {

constexpr int kLines = 300;
std::string prompt(int i) { return std::string(static_cast<size_t>(i % 23 + 1), 'p'); }
std::string answer(int i) { return std::string(static_cast<size_t>(i % 17), static_cast<char>('a' + i % 5)); }

struct Pairs {
  ScratchFolder folder;
  std::shared_ptr<const Tokenizer> tokenizer = with_eos(std::make_shared<CharTokenizer>("abcdep"), Eos::document);
  Documents documents;
  explicit Pairs(const std::string& more = "") : documents{.files = write(more), .options = {.format = format_of(kPairs)}} {}

 private:
  TextSource write(const std::string& more) const {
    std::string lines;
    for (int i = 0; i < kLines; ++i) lines += R"({"prompt": ")" + prompt(i) + R"(", "answer": ")" + answer(i) + "\"}\n";
    return TextSource(folder.write("pairs.jsonl", lines + more));
  }
};

}  // namespace

TEST_CASE("shards of documents with a mask: the tokens of answers count, read anywhere") {
  const Pairs pairs;
  std::string expected;
  for (const int threads : {1, 3}) {
    const Threads count(threads);
    const std::string name = std::to_string(threads), path = prepare(pairs.folder, name, pairs.documents, pairs.tokenizer, 500);
    if (expected.empty()) expected = bytes_of(path);
    CHECK(bytes_of(path) == expected);
  }
  const Tokens tokens = Tokens::open(pairs.folder / "1", *pairs.tokenizer);
  CHECK(tokens.has_mask());
  CHECK(tokens.shards() > 5);
  const std::vector<uint8_t> all = all_counts(tokens);
  int i = 0;
  for (int64_t shard = 0; shard < tokens.shards(); ++shard) {
    for (int64_t d = 0; d < tokens.documents(shard); ++d, ++i) {
      const TokenSpan span = tokens.document(shard, d);
      std::vector<int64_t> ids(static_cast<size_t>(span.size())), right = pairs.tokenizer->encode(prompt(i) + answer(i));
      std::vector<uint8_t> counts(ids.size()), counted(prompt(i).size(), 0);
      right.push_back(6);  // <eos>
      counted.resize(right.size(), 1);
      tokens.read(span.first, ids);
      tokens.read_counts(span.first, counts);
      CHECK(ids == right);
      CHECK(counts == counted);
      CHECK(std::equal(counts.begin(), counts.end(), all.begin() + span.first));
    }
  }
  CHECK(i == kLines);
  std::vector<uint8_t> none, three(3);
  tokens.read_counts(7, none);
  CHECK(contains(error_of([&] { tokens.read_counts(tokens.size() - 2, three); }), " are outside the text of "));
}

TEST_CASE("a mask is a bit per token, in a shard of version 2 that is checked like others") {
  const Pairs pairs;
  const std::string path = prepare(pairs.folder, "one", pairs.documents, pairs.tokenizer), shard = path + "/" + shard_name(0);
  const ShardHeader header = ShardFile(shard).header();
  CHECK(header.version == 2);
  CHECK(header.index_offset() - header.mask_offset() == (header.tokens + 63) / 64 * 8);
  const std::string bytes = read_file(shard);
  const std::vector<uint8_t> counts = all_counts(Tokens::open(path, *pairs.tokenizer));
  for (size_t i = 0; i < counts.size(); ++i)
    CHECK((static_cast<unsigned char>(bytes[static_cast<size_t>(header.mask_offset()) + i / 8]) >> i % 8 & 1) == counts[i]);
  alter(shard, static_cast<size_t>(header.mask_offset()), "x");
  CHECK(contains(error_of([&] { all_counts(Tokens::open(path, *pairs.tokenizer)); }), "the shard was altered or damaged"));
  const Tokens plain = Tokens::open(prepared(pairs.folder, "plain", "a\nb\n"), ByteTokenizer());
  CHECK(!plain.has_mask());
  CHECK(all_counts(plain) == std::vector<uint8_t>{1, 1, 1, 1});
}

TEST_CASE("an interrupted preparation of documents with a mask continues to the same bytes") {
  const Pairs pairs;
  const std::string whole = prepare(pairs.folder, "whole", pairs.documents, pairs.tokenizer, 500), bytes = bytes_of(whole);
  for (int64_t kept = 0; kept < 6; ++kept) {
    for (int64_t shard = kept; std::filesystem::remove(whole + "/" + shard_name(shard)); ++shard) {
    }
    prepare(pairs.folder, "whole", pairs.documents, pairs.tokenizer, 500);
    CHECK(bytes_of(whole) == bytes);
  }
}

TEST_CASE("a line that cannot be encoded is named") {
  const Pairs pairs("{\"prompt\": \"p\", \"answer\": \"?\"}\n");
  for (const int threads : {1, 4}) {
    const Threads count(threads);
    CHECK(contains(error_of([&] { prepare(pairs.folder, "none", pairs.documents, pairs.tokenizer); }),
        format_message("pairs.jsonl:{}: char tokenizer: '?' (U+003F) at byte 0 ", {kLines + 1})));
  }
}

TEST_CASE("chosen documents: in one shard, with their places in the tokens") {
  const Pairs pairs;
  const Tokens tokens = Tokens::open(prepare(pairs.folder, "whole", pairs.documents, pairs.tokenizer, 500), *pairs.tokenizer);
  const TokenSpan a{3, 7}, b = tokens.document(tokens.shards() - 1, 0);
  const Tokens few = tokens.select({a, b});
  CHECK((few.shards() == 1 && few.documents(0) == 2 && few.size() == tokens.size() && few.hash() == tokens.hash() && few.has_mask()));
  const Tokens both = join({few, few});
  CHECK((both.shards() == 2 && both.documents(1) == 2 && both.size() == 2 * tokens.size()));
  CHECK((both.document(1, 0).first == tokens.size() + 3 && both.document(1, 1).end == tokens.size() + b.end));
  std::vector<int64_t> ids(4), again(4);
  few.read(few.document(0, 0).first, ids);
  both.read(both.document(1, 0).first, again);
  CHECK(ids == again);
}

TEST_CASE("joined corpora and parts have the documents, labels and masks of each") {
  const Pairs pairs;
  const Tokens tokens = Tokens::open(prepare(pairs.folder, "whole", pairs.documents, pairs.tokenizer, 500), *pairs.tokenizer);
  const auto [train, validation] = tokens.split(0.37);
  const Tokens both = join({train, validation});
  CHECK(read_all(both) == read_all(tokens));
  CHECK(all_counts(both) == all_counts(tokens));
  CHECK(both.name() == "whole (train) and 1 more");
  CHECK((both.hash() != tokens.hash()));
  int64_t next = 0;
  for (int64_t shard = 0; shard < both.shards(); ++shard)
    for (int64_t i = 0; i < both.documents(shard); ++i) {
      CHECK(both.document(shard, i).first == next);
      next = both.document(shard, i).end;
    }
  CHECK(next == both.size());
  CHECK(error_of([&] { join({}); }) == "data: no tokens were given");
  CHECK(error_of([&] {
    join({tokens, tokens_of({1, 2}, 3)});
  }) == "data: whole and ids were made by different tokenizers, of 7 and 3 tokens");
}
