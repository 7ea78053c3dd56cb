// Vocabularies made from texts: against the definition, the same on any number of threads, restricted to a text.
#include "data/tokenizers/training/training.h"

#include <doctest/doctest.h>

#include <map>

#include "core/cpu/parallel.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/training/pair_merging.h"
#include "tests/data/files.h"

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

// The definition: count all pairs, merge the first of the most frequent ones everywhere, and again.
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

class Threads {
 public:
  explicit Threads(int threads) : before_(thread_count()) { set_thread_count(threads); }
  ~Threads() { set_thread_count(before_); }

 private:
  int before_;
};

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
    const auto join = [](std::string_view left, std::string_view right) { return std::string(left).append(right); };
    const size_t vocab = 3 + sequence.below(60);
    const int64_t least = 1 + static_cast<int64_t>(sequence.below(4));
    if (!same(learn_merges(words, pieces, {vocab, least, join}), learnt_by_definition(words, letters, vocab, least)))
      FAIL("round " << round);
    CHECK(pieces.size() <= vocab);
  }
}

TEST_CASE("training: the same vocabulary on any number of threads") {
  const ScratchFolder folder;
  const TextSource text(folder.write("text", random_words(400'000, 5)));  // more than one part of 256 KiB
  for (const TokenizerKind& kind : tokenizer_kinds()) {
    const TrainingOptions options{.vocab = kind.needs_size ? 400 : 0};
    std::string json;
    for (const int threads : {1, 2, 5}) {
      const Threads count(threads);
      const auto tokenizer = train_tokenizer(kind, text, options, {});
      if (json.empty()) json = tokenizer->to_json();
      CHECK(tokenizer->to_json() == json);
      CHECK(tokenizer->name() == kind.name);
    }
  }
}

TEST_CASE("training: byte pair encoding") {
  const ScratchFolder folder;
  const std::string words = "low low low low low lower lower newest newest newest newest newest newest widest widest widest\n";
  const TextSource text(folder.write("text", words));
  const auto tokenizer = train_bpe(text, {.vocab = 262, .special = {"<eos>"}});
  CHECK(tokenizer->vocab_size() == 262);
  CHECK(tokenizer->find("<eos>") == 0);
  CHECK(tokenizer->find("!") == 1);
  CHECK(tokenizer->find("es") == 257);  // 9 times, as often as st, whose ids are larger
  CHECK(tokenizer->find("est") == 258);
  CHECK(tokenizer->decode(tokenizer->encode(words + "\xff")) == words + "\xff");
  CHECK(train_bpe(text, {.vocab = 5000, .min_count = 100})->vocab_size() == 256);
  CHECK(error_of([&] { train_bpe(text, {.vocab = 200}); }) ==
        "bpe training: a vocabulary of 200 pieces, but 256 are needed before the first merge");
}

TEST_CASE("training: wordpiece") {
  const ScratchFolder folder;
  const TextSource text(folder.write("text", "Éa éa éa ab ab. ab xyz"));
  const auto tokenizer = train_wordpiece(text, {.vocab = 30, .lowercase = true});
  for (const char* piece : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "e", "##a", "##b", "ab", "ea", "."})
    CHECK(tokenizer->find(piece) >= 0);
  CHECK(tokenizer->find("[UNK]") == 1);
  CHECK(tokenizer->decode(tokenizer->encode("ÉA ab. xyz")) == "ea ab. xyz");
  CHECK(train_wordpiece(text, {.vocab = 30, .lowercase = true, .alphabet = 4})->encode("xyz") == Ids{1});
  const TextSource invalid(folder.write("invalid", "ab \xe9"));
  CHECK(
      error_of([&] { train_wordpiece(invalid, {.vocab = 30}); }) == "invalid: wordpiece tokenizer: byte 3 (value 0xe9) is not valid UTF-8");
}

TEST_CASE("training: words, the most frequent first") {
  const ScratchFolder folder;
  const TextSource text(folder.write("text", "b a c b\nb a <unk> d\n"));
  const auto all = train_tokenizer(*find_tokenizer_kind("word"), text, {.min_count = 1}, {.after = Eos::line});
  CHECK(all->vocab_size() == 6);
  CHECK(all->encode("b a c d\n") == Ids{2, 3, 4, 5, 1});
  const auto few = train_words(text, {.vocab = 2, .min_count = 1});
  CHECK(few->encode("b a <unk>") == Ids{1, 0, 0});
  CHECK(train_words(text, {})->vocab_size() == 3);
}

TEST_CASE("training: errors") {
  const ScratchFolder folder;
  const TextSource text(folder.write("text", "a b"));
  CHECK(error_of([&] { train_tokenizer(*find_tokenizer_kind("bpe"), text, {}, {}); }) ==
        "bpe tokenizer: the size of the vocabulary that is to be trained is not given");
  CHECK(error_of([&] { train_tokenizer(*find_tokenizer_kind("char"), text, {}, {.after = Eos::line}); }) ==
        "char tokenizer: its vocabulary has no place for '<eos>'");
  CHECK(find_tokenizer_kind("morse") == nullptr);
  CHECK(list_of_tokenizers() == "char, byte, word, bpe, wordpiece");
  CHECK(error_of([&] { restrict_to(text, ByteTokenizer()); }) ==
        "restrict: the byte tokenizer has no pieces that could be left out, only bpe, wordpiece and word have");
}

TEST_CASE("restricting: fewer pieces, the same text") {
  const ScratchFolder folder;
  const TextSource large(folder.write("large", random_words(20'000, 1))), small(folder.write("small", random_words(300, 2)));
  const std::string text = read_file(folder / "small");
  for (const char* name : {"bpe", "wordpiece", "word"}) {
    const auto full = train_tokenizer(*find_tokenizer_kind(name), large, {.vocab = 600}, {});
    const auto fewer = restrict_to(small, *full);
    INFO(name);
    CHECK(fewer->vocab_size() < full->vocab_size());
    const Ids before = full->encode(text), after = fewer->encode(text);
    CHECK(before.size() == after.size());
    CHECK(full->decode(before) == fewer->decode(after));
    CHECK(restrict_to(small, *fewer)->to_json() == fewer->to_json());
  }
}

TEST_CASE("restricting: special pieces stay, found as they are written") {
  const ScratchFolder folder;
  const TextSource large(folder.write("large", random_words(20'000, 1))), small(folder.write("small", "ab cd <unk> ab"));
  for (const char* name : {"bpe", "wordpiece"}) {
    const auto full = train_tokenizer(*find_tokenizer_kind(name), large, {.vocab = 300}, {});
    const auto fewer = restrict_to(small, *with_special(full, {"<unk>", "<end>"}));
    INFO(name);
    CHECK(full->encode("<unk>").size() > 1);
    CHECK(fewer->encode("<unk>") == Ids{fewer->find("<unk>")});
    CHECK(fewer->find("<unk>") == fewer->vocab_size() - 2);
    CHECK(fewer->find("<end>") == fewer->vocab_size() - 1);
    CHECK(fewer->encode("ab<unk>").back() == fewer->find("<unk>"));
    CHECK(tokenizer_from_json(fewer->to_json())->to_json() == fewer->to_json());
  }
  const auto full = train_tokenizer(*find_tokenizer_kind("bpe"), large, {.vocab = 300}, {});
  CHECK(error_of([&] { with_special(full, {"a"}); }) ==
        "special piece 'a': the vocabulary has it already, as " + std::to_string(full->find("a")));
  CHECK(error_of([] { with_special(std::make_shared<ByteTokenizer>(), {"<unk>"}); }) ==
        "byte tokenizer: no piece can be added to its vocabulary");
}

TEST_CASE("restricting: a piece behind every line or document stays, also where the text has none") {
  const ScratchFolder folder;
  const TextSource large(folder.write("large", random_words(20'000, 1))), small(folder.write("small", "ab cd"));
  for (const char* name : {"bpe", "wordpiece", "word"}) {
    for (const Eos after : {Eos::line, Eos::document}) {
      const auto full = train_tokenizer(*find_tokenizer_kind(name), large, {.vocab = 300}, {.after = after});
      const auto fewer = restrict_to(small, *full);
      INFO(name);
      CHECK(fewer->vocab_size() < full->vocab_size());
      CHECK(fewer->find("<eos>") >= 0);
      CHECK(fewer->decode(fewer->encode("ab cd\nab")) == full->decode(full->encode("ab cd\nab")));
      Ids end;
      fewer->append_end("ab", end);
      CHECK(end == Ids{fewer->find("<eos>")});
      CHECK(tokenizer_from_json(fewer->to_json())->to_json() == fewer->to_json());
    }
  }
}
