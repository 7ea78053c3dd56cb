#include "data/tokenizers/training/training.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/training/count_words.h"
#include "data/tokenizers/training/pair_merging.h"
#include "data/tokenizers/words/word_tokenizer.h"

namespace ricci {
namespace {

// The special pieces that a vocabulary begins with, each once: its kind's, then the requested ones.
std::vector<std::string> special_pieces(std::vector<std::string> pieces, const std::vector<std::string>& asked) {
  for (const std::string& piece : asked)
    if (std::find(pieces.begin(), pieces.end(), piece) == pieces.end()) pieces.push_back(piece);
  return pieces;
}

// They are found in texts as they are written; their ids are their places.
std::vector<AddedToken> as_added(const std::vector<std::string>& special) {
  std::vector<AddedToken> added;
  for (const std::string& piece : special) added.push_back({.id = static_cast<int64_t>(added.size()), .content = piece});
  return added;
}

// Error: a vocabulary of this size has no place for the pieces that it begins with, or is too large.
void check_size(const char* who, const TrainingOptions& options, size_t least) {
  if (options.vocab < static_cast<int64_t>(least))
    fail("{}: a vocabulary of {} pieces, but {} are needed before the first merge", {who, options.vocab, least});
  if (options.vocab > kMaxPieces) fail("{}: a vocabulary of {} pieces, at most {} are possible", {who, options.vocab, kMaxPieces});
}

// The special pieces, then a piece for each byte.
std::vector<std::string> byte_pieces(const std::vector<std::string>& special) {
  std::vector<std::string> pieces = special, letters;
  for (int byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    letters.push_back(bytes_to_letters({&letter, 1}));
  }
  std::sort(letters.begin(), letters.end());
  pieces.insert(pieces.end(), letters.begin(), letters.end());
  return pieces;
}

// Words do not cross the ends of lines, and do not contain them, if each line ends with a token.
std::vector<CountedWord> count_bpe_words(const Texts& texts, const TrainingOptions& options) {
  const BpeTokenizer bytes(Vocabulary(byte_pieces({})), {}, {}, {.pattern = options.pattern});
  return count_words(texts, bytes, [&](std::string_view part, int64_t, WordCounter& counter) {
    while (!part.empty()) {
      const std::string_view line = options.lines ? part.substr(0, part.find('\n')) : part;
      for (size_t begin = 0, end = 0; begin < line.size(); begin = end) {
        end = options.pattern->word_end(line, begin);
        counter.add(line.substr(begin, end - begin));
      }
      part.remove_prefix(std::min(line.size() + 1, part.size()));
    }
  });
}

}  // namespace

std::shared_ptr<const Tokenizer> train_bpe(const Texts& texts, const TrainingOptions& options) {
  const std::vector<std::string> special = special_pieces({}, options.special);
  std::vector<std::string> pieces = byte_pieces(special);
  check_size("bpe training", options, pieces.size());
  std::array<uint32_t, 256> id_of_byte{};
  for (size_t id = special.size(); id < pieces.size(); ++id)
    id_of_byte[static_cast<unsigned char>(letters_to_bytes(pieces[id])->front())] = static_cast<uint32_t>(id);
  std::vector<PieceWord> words;
  for (const CountedWord& word : count_bpe_words(texts, options)) {
    words.push_back({{}, word.count});
    for (const char byte : word.word) words.back().pieces.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
  }
  std::vector<BpeTokenizer::Pair> pairs;
  for (const Merges::Merge& merge : learn_merges(std::move(words), pieces, static_cast<size_t>(options.vocab), options.min_count))
    pairs.emplace_back(pieces[merge.left], pieces[merge.right]);
  return std::make_shared<BpeTokenizer>(Vocabulary(pieces), pairs, as_added(special), BpeOptions{.pattern = options.pattern});
}

std::shared_ptr<const Tokenizer> train_words(const Texts& texts, const TrainingOptions& options) {
  const std::string unknown = "<unk>";
  std::vector<std::string> pieces = special_pieces({unknown}, options.special);
  const std::vector<AddedToken> added = as_added(pieces);
  const WordTokenizer plain(Vocabulary(pieces), {}, unknown);
  std::vector<CountedWord> words = count_words(texts, plain, [](std::string_view part, int64_t offset, WordCounter& counter) {
    check_utf8("word tokenizer", part, offset);
    size_t position = 0;
    for (std::string_view word = next_spaced_word(part, position); !word.empty(); word = next_spaced_word(part, position))
      counter.add(word);
  });
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
