// Texts in parts: every tokenizer gives the ids of the whole, wherever a stream is cut and on any number of threads.
#include <doctest/doctest.h>

#include "core/cpu/parallel.h"
#include "data/shards/pieces.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

using Ids = std::vector<int64_t>;

std::string random_text(size_t parts, uint64_t seed) {
  static const char* const kinds[] = {"the ", "tensor", "'s", " 12", "345", ".", "\n", "  ", "\r\n\t", "é", "e\u0301", "語", " <s> ", "<s>",
      "\u3000", "😀", "I'LL ", "a", "_", "[MASK]", "。", "\u0958", "\u1112\u1161", "\u11ab", "\u0323", "\u212a", "<l>", "<r>", "<w>"};
  Sequence sequence(seed);
  std::string text;
  for (size_t i = 0; i < parts; ++i) text += kinds[sequence.below(std::size(kinds))];
  return text;
}

// Texts of little more than added tokens and white space.
std::string random_tokens(size_t parts, uint64_t seed) {
  static const char* const kinds[] = {"<l>", "<r>", "<w>", "<s>", " ", "  ", "\n", "\u3000", "a", "。", "é"};
  Sequence sequence(seed);
  std::string text;
  for (size_t i = 0; i < parts; ++i) text += kinds[sequence.below(std::size(kinds))];
  return text;
}

// The same pieces and merges, for texts that are normalised or given a blank, with tokens that take white space or stand alone.
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

// One of each kind, some with <eos>, made from a text of the kind that is encoded.
std::vector<std::shared_ptr<const Tokenizer>> tokenizers() {
  const ScratchFolder folder;
  const TextSource text(folder.write("text", random_text(20'000, 1)));
  std::vector<std::shared_ptr<const Tokenizer>> made;
  for (const TokenizerKind& kind : tokenizer_kinds()) {
    const TrainingOptions options{.vocab = kind.needs_size ? 400 : 0, .special = {"<s>"}};
    made.push_back(train_tokenizer(kind, text, options, {}));
    if (kind.has_pieces) made.push_back(train_tokenizer(kind, text, options, {.after = Eos::line}));
  }
  for (const char* name : {"llama3", "qwen2"}) {
    const SplitPattern& pattern = split_pattern_of_name(name);
    const auto plain = train_bpe(text, {.vocab = 400, .pattern = &pattern});
    made.push_back(plain);
    for (const BpeOptions& options : {BpeOptions{.pattern = &pattern}, BpeOptions{.pattern = &pattern, .compose = true},
             BpeOptions{.add_prefix_space = true}, BpeOptions{.pattern = &pattern, .add_prefix_space = true, .compose = true}})
      made.push_back(altered(*plain, options));
  }
  return made;
}

}  // namespace

TEST_CASE("streams: both sides of a cut encode on their own") {
  for (const auto& tokenizer : tokenizers())
    for (uint64_t seed = 0; seed < 90; ++seed) {
      const std::string text = seed < 60 ? random_text(12, 100 + seed) : random_tokens(8, seed);
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
  const std::string text = random_text(300'000, 3);  // 1 MiB
  const TextSource source(folder.write("text", text));
  for (const auto& tokenizer : tokenizers()) {
    Ids whole;
    tokenizer->append_ids(text, 0, whole);
    for (const int threads : {1, 3}) {
      const int before = thread_count();
      set_thread_count(threads);
      CHECK(tokenizer->encode(text) == whole);
      Ids streamed;
      int64_t bytes = 0;
      for_each_ids(source, *tokenizer, [&](std::span<const int64_t> ids, int64_t of_bytes) {
        streamed.insert(streamed.end(), ids.begin(), ids.end());
        bytes += of_bytes;
      });
      set_thread_count(before);
      Ids expected = whole;
      tokenizer->append_end(text, expected);
      CHECK(streamed == expected);
      CHECK(bytes == static_cast<int64_t>(text.size()));
    }
  }
  const TextSource invalid(folder.write("invalid", text + " \xe9 " + text + " \xe8 "));
  const auto words = train_words(source, {});
  CHECK(error_of([&] { for_each_ids(invalid, *words, [](std::span<const int64_t>, int64_t) {}); }) ==
        "invalid: word tokenizer: byte " + std::to_string(text.size() + 1) + " (value 0xe9) is not valid UTF-8");
}

TEST_CASE("streams: a text without blanks is cut, too") {
  const std::string dots(3 << 20, '.');
  std::string chinese;
  for (int i = 0; i < 200'000; ++i) chinese += i % 7 ? "語" : "。";
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
