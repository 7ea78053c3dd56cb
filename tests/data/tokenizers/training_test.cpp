// Vocabularies made from texts: against the definition, the same for any thread count, restricted to a text. Texts in parts: every
// tokenizer gives the ids of the full text, wherever a stream is cut.
#include "data/tokenizers/training/training.h"

#include <doctest/doctest.h>

#include <map>

#include "core/cpu/parallel.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/words.h"
#include "tests/data/encoded.h"
#include "tests/data/files.h"
#include "tests/data/shards/shard_files.h"

using namespace ricci;
using namespace test_data;

namespace {

using Ids = std::vector<int64_t>;

// Words of few letters, some frequent.
std::string random_words(size_t count, uint64_t seed) {
  static const char* const letters[] = {"a", "a", "a", "a", "b", "b", "c", "d", "é", "."};
  Sequence sequence(seed);
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    for (uint64_t n = 1 + sequence.below(7); n > 0; --n) text += letters[sequence.below(std::size(letters))];
    text += sequence.below(9) == 0 ? "\n" : " ";
  }
  return text;
}

// The definition: repeatedly count all pairs and merge the first of the most frequent ones everywhere.
std::vector<Merges::Merge> learnt_by_definition(
    std::vector<PieceWord> words, std::vector<std::string> pieces, size_t vocab, int64_t least) {
  std::vector<Merges::Merge> merges;
  while (pieces.size() < vocab) {
    std::map<std::pair<uint32_t, uint32_t>, int64_t> counts;
    for (const PieceWord& word : words)
      for (size_t i = 0; i + 1 < word.pieces.size(); ++i) counts[{word.pieces[i], word.pieces[i + 1]}] += word.count;
    auto best = counts.begin();
    for (auto each = counts.begin(); each != counts.end(); ++each)
      if (each->second > best->second) best = each;
    if (best == counts.end() || best->second < least) break;
    const auto [left, right] = best->first;
    const std::string text = pieces[left] + pieces[right];
    uint32_t merged = 0;
    while (merged < pieces.size() && pieces[merged] != text) ++merged;
    if (merged == pieces.size()) pieces.push_back(text);
    merges.push_back({left, right, merged});
    for (PieceWord& word : words)
      for (size_t i = 0; i + 1 < word.pieces.size(); ++i)
        if (word.pieces[i] == left && word.pieces[i + 1] == right) {
          word.pieces[i] = merged;
          word.pieces.erase(word.pieces.begin() + static_cast<int64_t>(i) + 1);
        }
  }
  return merges;
}

bool same(const std::vector<Merges::Merge>& a, const std::vector<Merges::Merge>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const Merges::Merge& x, const Merges::Merge& y) {
    return x.left == y.left && x.right == y.right && x.merged == y.merged;
  });
}

// Tokens of one, two or three letters, at the beginning of a word and inside it.
std::shared_ptr<const Tokenizer> wordpiece() {
  std::vector<std::string> pieces = {"[UNK]", "[MASK]", ".", "the", "ten", "##sor", "12", "3", "##45", "i", "##ll", "語"};
  for (const std::string start : {"", "##"})
    for (const std::string first : {"a", "b", "c", "d", "é", "e", "s"})
      for (const std::string next : {"", "a", "b", "aa"}) pieces.push_back(start + first + next);
  return std::make_shared<WordPieceTokenizer>(
      Vocabulary(pieces), std::vector<AddedToken>{{.id = 1, .content = "[MASK]"}}, WordPieceOptions());
}

// A tokenizer kind that is made from a text, or WordPiece.
std::shared_ptr<const Tokenizer> tokenizer_of(const std::string& kind, const Documents& documents, int64_t vocab, Eos after = Eos::none) {
  if (kind == "wordpiece") return with_eos(wordpiece(), after, "<eos>");
  return train(kind, documents, {.vocab = vocab}, after);
}

std::string random_parts(std::span<const char* const> kinds, size_t parts, uint64_t seed) {
  Sequence sequence(seed);
  std::string text;
  for (size_t i = 0; i < parts; ++i) text += kinds[sequence.below(kinds.size())];
  return text;
}

std::string random_text(size_t parts, uint64_t seed) {
  static const char* const kinds[] = {"the ", "tensor", "'s", " 12", "345", ".", "\n", "  ", "\r\n\t", "é", "e\u0301", "語", " <s> ", "<s>",
      "\u3000", "😀", "I'LL ", "a", "_", "[MASK]", "。", "\u0958", "\u1112\u1161", "\u11ab", "\u0323", "\u212a", "<l>", "<r>", "<w>"};
  return random_parts(kinds, parts, seed);
}

// Texts of little more than added tokens and white space.
std::string random_tokens(size_t parts, uint64_t seed) {
  static const char* const kinds[] = {"<l>", "<r>", "<w>", "<s>", " ", "  ", "\n", "\u3000", "a", "。", "é"};
  return random_parts(kinds, parts, seed);
}

// The same tokens and merges, for texts that are normalized or given a blank, with tokens that include white space or are single words.
std::shared_ptr<const Tokenizer> altered(const Tokenizer& tokenizer, const BpeOptions& options) {
  const auto& bpe = dynamic_cast<const BpeTokenizer&>(tokenizer);
  std::vector<std::string> pieces;
  for (int64_t id = 0; id < bpe.vocab_size(); ++id) pieces.emplace_back(bpe.vocabulary().piece(id));
  std::vector<BpeTokenizer::Pair> pairs;
  for (const Merges::Merge& merge : bpe.merges().all()) pairs.emplace_back(pieces[merge.left], pieces[merge.right]);
  const int64_t next = bpe.vocab_size();
  std::vector<AddedToken> added = {{.id = next, .content = "<l>", .lstrip = true}, {.id = next + 1, .content = "<r>", .rstrip = true}};
  if (options.compose) added.push_back({.id = next + 2, .content = "<w>", .single_word = true});
  return std::make_shared<BpeTokenizer>(Vocabulary(pieces), pairs, added, options);
}

// One tokenizer of each kind, some with <eos>, made from a text of the kind that is encoded.
std::vector<std::shared_ptr<const Tokenizer>> make_tokenizers() {
  const ScratchFolder folder;
  const Documents text{TextSource(folder.write("text", random_text(5'000, 1))).read_as(Encoding::bytes)};
  std::vector<std::shared_ptr<const Tokenizer>> made;
  for (const char* name : {"char", "byte", "word", "bpe"}) {
    const TokenizerKind& kind = *find_tokenizer_kind(name);
    const TrainingOptions options{.vocab = kind.needs_size ? 400 : 0, .special = {"<s>"}};
    made.push_back(train(kind.name, text, options));
    if (kind.takes_eos) made.push_back(train(kind.name, text, options, Eos::line));
  }
  for (const Eos after : {Eos::none, Eos::line}) made.push_back(with_eos(wordpiece(), after));
  for (const char* name : {"llama3", "qwen2"}) {
    const SplitPattern& pattern = find_pattern(name);
    const auto plain = train_bpe({text}, {.vocab = 400, .pattern = &pattern});
    made.push_back(plain);
    for (const BpeOptions& options : {BpeOptions{.pattern = &pattern}, BpeOptions{.pattern = &pattern, .compose = true},
             BpeOptions{.add_prefix_space = true}, BpeOptions{.pattern = &pattern, .add_prefix_space = true, .compose = true}})
      made.push_back(altered(*plain, options));
  }
  return made;
}

const std::vector<std::shared_ptr<const Tokenizer>>& tokenizers() {
  static const auto all = make_tokenizers();
  return all;
}

}  // namespace

TEST_CASE("learning merges: against the definition") {
  Sequence sequence(1);
  for (int round = 0; round < 60; ++round) {
    const std::vector<std::string> letters = {"a", "b", "c"};
    std::vector<PieceWord> words;
    for (uint64_t n = 1 + sequence.below(30); n > 0; --n) {
      PieceWord& word = words.emplace_back();
      word.count = 1 + static_cast<int64_t>(sequence.below(5));
      for (uint64_t m = 1 + sequence.below(12); m > 0; --m) word.pieces.push_back(static_cast<uint32_t>(sequence.below(3)));
    }
    std::vector<std::string> pieces = letters;
    const size_t vocab = 3 + sequence.below(60);
    const int64_t least = 1 + static_cast<int64_t>(sequence.below(4));
    if (!same(learn_merges(words, pieces, vocab, least), learnt_by_definition(words, letters, vocab, least))) FAIL("round " << round);
    CHECK(pieces.size() <= vocab);
  }
}

TEST_CASE("training: the vocabulary does not depend on the number of threads") {
  const ScratchFolder folder;
  const Documents text{TextSource(folder.write("text", random_words(120'000, 5)))};  // more than one part of 256 KiB
  for (const char* name : {"char", "byte", "word", "bpe"}) {
    const TokenizerKind& kind = *find_tokenizer_kind(name);
    const TrainingOptions options{.vocab = kind.needs_size ? 400 : 0};
    std::string json;
    for (const int threads : {1, 2, 5}) {
      const Threads count(threads);
      const auto tokenizer = train(kind.name, text, options);
      if (json.empty()) json = tokenizer->to_json();
      CHECK(tokenizer->to_json() == json);
      CHECK(tokenizer->name() == kind.name);
    }
  }
}

TEST_CASE("training: byte pair encoding") {
  const ScratchFolder folder;
  const std::string words = "low low low low low lower lower newest newest newest newest newest newest widest widest widest\n";
  const Documents text{TextSource(folder.write("text", words))};
  const auto tokenizer = train_bpe({text}, {.vocab = 262, .special = {"<eos>"}});
  CHECK(tokenizer->vocab_size() == 262);
  CHECK(tokenizer->find("<eos>") == 0);
  CHECK(tokenizer->find("!") == 1);
  CHECK(tokenizer->find("es") == 257);  // 9 times, like st, with larger ids
  CHECK(tokenizer->find("est") == 258);
  CHECK(tokenizer->decode(tokenizer->encode(words + "\xff")) == words + "\xff");
  CHECK(train_bpe({text}, {.vocab = 5000, .min_count = 100})->vocab_size() == 256);
  CHECK(error_of([&] { train_bpe({text}, {.vocab = 200}); }) ==
        "bpe training: the vocabulary size is 200, expected at least 256, the number of tokens before the first merge");
}

TEST_CASE("training: a vocabulary is made from the training part of each source, and one of characters from all of them") {
  const ScratchFolder folder;
  const auto text = [&](const std::string& name, const std::string& words) { return Documents{TextSource(folder.write(name, words))}; };
  std::vector<Documents> sources{text("a", "aa bb aa bb zz zz "), text("b", "cc cc yy yy")};
  const auto words = make_tokenizer({.name = "word"}, sources, 0.67);
  for (const char* each : {"aa", "bb", "cc"}) CHECK(words->find(each) > 0);
  for (const char* each : {"zz", "yy"}) CHECK(words->find(each) == -1);
  CHECK((sources[0].cut == 12 && sources[1].cut == 7));
  for (Documents& each : sources) each.cut = 0;
  const auto letters = make_tokenizer({}, sources, 0.67);
  CHECK(letters->vocab_size() == 6);
  CHECK((sources[0].cut == 12 && sources[1].cut == 7));
  std::vector<Documents> records{{TextSource(folder.write("c.tsv", "\naa\n\nbb\naa\nbb\nzz\nzz\n")), {.format = format_of(kTsv)}}};
  const auto of_records = make_tokenizer({.name = "word", .training = {.min_count = 1}}, records, 0.67);
  CHECK((of_records->find("bb") > 0 && of_records->find("zz") == -1));
}

TEST_CASE("training: words, the most frequent first") {
  const ScratchFolder folder;
  const Documents text{TextSource(folder.write("text", "b a c b\nb a <unk> d\n"))};
  const auto all = train("word", text, {.min_count = 1}, Eos::line);
  CHECK(all->vocab_size() == 6);
  CHECK(all->encode("b a c d\n") == Ids{2, 3, 4, 5, 1});
  const auto few = train_words({text}, {.vocab = 2, .min_count = 1});
  CHECK(few->encode("b a <unk>") == Ids{1, 0, 0});
  CHECK(train_words({text}, {})->vocab_size() == 3);
}

TEST_CASE("training: errors") {
  const ScratchFolder folder;
  const Documents text{TextSource(folder.write("text", "a b"))};
  CHECK(error_of([&] { train("bpe", text); }) == "bpe tokenizer: training needs a vocabulary size");
  CHECK(error_of([&] { train("byte", text, {}, Eos::line); }) == "byte tokenizer: no token can be added to its vocabulary");
  CHECK(find_tokenizer_kind("morse") == nullptr);
  CHECK(list_of_tokenizers() == "char, byte, word, bpe");
  CHECK(error_of([&] { restrict_to(text, ByteTokenizer()); }) ==
        "restrict: expected a bpe, wordpiece or word tokenizer, got a byte tokenizer");
}

TEST_CASE("restricting: special pieces stay, found as they are written") {
  const ScratchFolder folder;
  const Documents large{TextSource(folder.write("large", random_words(20'000, 1)))},
      small{TextSource(folder.write("small", "ab cd <unk> ab"))};
  for (const char* name : {"bpe", "wordpiece"}) {
    const auto full = tokenizer_of(name, large, 300);
    const auto fewer = restrict_to(small, *with_additions(*full, {.pieces = {"<unk>", "<end>"}}));
    INFO(name);
    CHECK(full->encode("<unk>").size() > 1);
    CHECK(fewer->encode("<unk>") == Ids{fewer->find("<unk>")});
    CHECK(fewer->find("<unk>") == fewer->vocab_size() - 2);
    CHECK(fewer->find("<end>") == fewer->vocab_size() - 1);
    CHECK(fewer->encode("ab<unk>").back() == fewer->find("<unk>"));
    CHECK(tokenizer_from_json(fewer->to_json())->to_json() == fewer->to_json());
  }
  const auto full = train("bpe", large, {.vocab = 300});
  CHECK(error_of([&] { with_additions(*full, {.pieces = {"a"}}); }) ==
        "special token 'a' is already in the vocabulary, as id " + std::to_string(full->find("a")));
  CHECK(error_of([] { with_additions(ByteTokenizer(), {.pieces = {"<unk>"}}); }) ==
        "byte tokenizer: no token can be added to its vocabulary");
}

TEST_CASE("restricting: fewer pieces, the same text; a piece behind every line or document stays, also where the text has none") {
  const ScratchFolder folder;
  const Documents large{TextSource(folder.write("large", random_words(20'000, 1)))},
      small{TextSource(folder.write("small", random_words(300, 2) + "a"))};
  const std::string text = read_file(folder / "small");
  for (const char* name : {"bpe", "wordpiece", "word"})
    for (const Eos after : {Eos::none, Eos::line, Eos::document}) {
      const auto full = tokenizer_of(name, large, 600, after);
      const auto fewer = restrict_to(small, *full);
      INFO(name);
      CHECK(fewer->vocab_size() < full->vocab_size());
      const Ids before = full->encode(text), ids = fewer->encode(text);
      CHECK(before.size() == ids.size());
      CHECK(full->decode(before) == fewer->decode(ids));
      CHECK(restrict_to(small, *fewer)->to_json() == fewer->to_json());
      CHECK(tokenizer_from_json(fewer->to_json())->to_json() == fewer->to_json());
      Ids end;
      fewer->append_end("ab", end);
      CHECK(end == (after == Eos::none ? Ids{} : Ids{fewer->find("<eos>")}));
    }
}

TEST_CASE("training: no piece reaches from a document into the next") {
  const ScratchFolder folder;
  std::string lines;
  for (int i = 0; i < 4; ++i) lines += "{\"text\":\"ab\"}\n{\"text\":\"\\n\\n\"}\n";
  const Documents documents{TextSource(folder.write("a.jsonl", lines)), {.format = format_of(kJsonl)}},
      joined{.files = TextSource(folder.write("a.txt", "ab\n\nab\n\nab\n\nab\n\n"))};
  const auto of_documents = train_bpe({documents}, {.vocab = 300}), of_text = train_bpe({joined}, {.vocab = 300});
  CHECK(of_documents->vocab_size() == 258);  // the bytes, "ab" and "\n\n"
  CHECK(of_documents->encode("abab\n\n\n\n") == Ids{256, 256, 257, 257});
  CHECK(of_text->vocab_size() == 257);  // the split pattern parts the line ends before a word
  const Documents pairs{TextSource(folder.write("b.tsv", "ab\nab\nab\nab")), {.format = format_of(kTsv)}};
  CHECK(train_bpe({pairs}, {.vocab = 300})->vocab_size() == 257);
  CHECK(train_bpe({{TextSource(folder.write("b.txt", "abababab"))}}, {.vocab = 300})->vocab_size() == 258);  // "ab" and "abab"
  CHECK(train_words({pairs}, {})->encode("ab abab") == Ids{1, 0});
  CHECK(restrict_to(pairs, *of_documents)->vocab_size() == 257);
}

TEST_CASE("streams: both sides of a cut encode on their own") {
  for (const auto& tokenizer : tokenizers())
    for (uint64_t seed = 0; seed < 45; ++seed) {
      const std::string text = seed < 30 ? random_text(12, 100 + seed) : random_tokens(8, seed);
      const Ids whole = tokenizer->encode(text);
      size_t last = 0;
      for (size_t known = 1; known <= text.size(); ++known) {
        const size_t cut = tokenizer->complete_prefix(text.substr(0, known));
        if (cut > known) FAIL("a prefix of " << cut << " bytes out of " << known);
        Ids both = tokenizer->encode(text.substr(0, cut));
        for (const int64_t id : tokenizer->encode(text.substr(cut))) both.push_back(id);
        if (both != whole) FAIL(tokenizer->name() << ": '" << text << "' cut at " << cut);
        last = cut;
      }
      if (seed == 0) CHECK(last > 0);
    }
}

TEST_CASE("streams: ids and errors do not depend on the number of threads") {
  const ScratchFolder folder;
  const std::string text = random_text(100'000, 3);                                           // more than one piece
  const TextSource source = TextSource(folder.write("text", text)).read_as(Encoding::bytes);  // \r\n stays
  for (const auto& tokenizer : tokenizers()) {
    Ids whole;
    tokenizer->append_ids(text, 0, whole);
    for (const int threads : {1, 3}) {
      const Threads count(threads);
      CHECK(tokenizer->encode(text) == whole);
      Ids streamed;
      int64_t bytes = 0;
      for_each_encoded({source}, *tokenizer, [&](const DocumentPiece& piece, std::span<const int64_t> ids) {
        streamed.insert(streamed.end(), ids.begin(), ids.end());
        bytes += std::ssize(piece.text);
      });
      Ids expected = whole;
      tokenizer->append_end(text, expected);
      CHECK(streamed == expected);
      CHECK(bytes == static_cast<int64_t>(text.size()));
    }
  }
  const TextSource invalid = TextSource(folder.write("invalid", text + " \xe9 " + text + " \xe8 ")).read_as(Encoding::bytes);
  const auto words = train_words({{source}}, {});
  CHECK(error_of([&] { for_each_encoded({invalid}, *words, [](const DocumentPiece&, std::span<const int64_t>) {}); }) ==
        "invalid: word tokenizer: byte " + std::to_string(text.size() + 1) + " (value 0xe9) is not valid UTF-8");
}

TEST_CASE("streams: a text without blanks is also cut") {
  const std::string dots(1 << 18, '.');
  std::string chinese;
  for (int i = 0; i < 50'000; ++i) chinese += i % 7 ? "語" : "。";
  int cut = 0;
  for (const auto& tokenizer : tokenizers()) {
    const auto* const bpe = dynamic_cast<const BpeTokenizer*>(tokenizer.get());
    if (tokenizer->name() == "word" || (bpe && bpe->options().add_prefix_space)) continue;  // their units are between blanks
    if (bpe) CHECK((tokenizer->decode(tokenizer->encode(dots)) == dots));
    CHECK(tokenizer->complete_prefix(chinese) > chinese.size() - 40);
    ++cut;
  }
  CHECK(cut > 10);
}
