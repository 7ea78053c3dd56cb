#include <algorithm>

#include "data/tokenizers/training/special_pieces.h"
#include "data/tokenizers/training/training.h"
#include "data/tokenizers/training/word_counts.h"
#include "data/tokenizers/utf8.h"
#include "data/tokenizers/words/word_tokenizer.h"

namespace ricci {

std::shared_ptr<const Tokenizer> train_words(const TextSource& text, const TrainingOptions& options) {
  const std::string unknown = "<unk>";
  std::vector<std::string> pieces = special_pieces({unknown}, options.special);
  const std::vector<AddedToken> added = as_added(pieces);
  const WordTokenizer plain(Vocabulary(pieces), {}, unknown);
  const auto count = [](std::string_view part, int64_t offset, WordCounter& counter) {
    check_utf8("word tokenizer", part, offset);
    size_t at = 0;
    for (std::string_view word = next_spaced_word(part, at); !word.empty(); word = next_spaced_word(part, at)) counter.add(word);
  };
  std::vector<CountedWord> words = count_words(text, {[&](std::string_view part) { return plain.complete_prefix(part); }, count});
  std::stable_sort(words.begin(), words.end(), [](const CountedWord& a, const CountedWord& b) { return a.count > b.count; });
  if (options.vocab > 0) check_size("word training", options, pieces.size());
  const size_t most = options.vocab > 0 ? static_cast<size_t>(options.vocab) : static_cast<size_t>(kMaxPieces);
  for (const CountedWord& word : words) {
    const bool special = std::any_of(added.begin(), added.end(), [&](const AddedToken& token) { return token.content == word.word; });
    if (!special && word.count >= options.min_count && pieces.size() < most) pieces.push_back(word.word);
  }
  // <unk> in a text is a word as it is found between blanks; the other special pieces are found inside words, too.
  const std::vector<AddedToken> found(added.begin() + 1, added.end());
  return std::make_shared<WordTokenizer>(Vocabulary(pieces), found, unknown);
}

}  // namespace ricci
