#include <algorithm>
#include <map>
#include <set>

#include "data/text/utf8.h"
#include "data/tokenizers/training/common.h"
#include "data/tokenizers/training/pair_merging.h"
#include "data/tokenizers/training/training.h"
#include "data/tokenizers/words/word_tokenizer.h"
#include "data/tokenizers/words/wordpiece_tokenizer.h"

namespace ricci {
namespace {

// A word as characters, and how often it occurs.
struct Letters {
  std::u32string codes;
  int64_t count;
};

std::u32string codes_of(std::string_view word) {
  std::u32string codes;
  for (size_t position = 0; position < word.size();) {
    const Utf8Character character = decode_utf8(word, position);
    codes += character.code;
    position += character.bytes;
  }
  return codes;
}

std::vector<Letters> count_letters(const Texts& texts, const WordPieceTokenizer& plain) {
  const auto count = [&](std::string_view part, int64_t offset, WordCounter& counter) {
    const std::string normal = plain.options().text.normalize(part, offset);
    for (size_t begin = 0, space_end = 0; begin < normal.size();) {
      const size_t end = bert_word_end(normal, begin, space_end);
      if (end > begin) counter.add(std::string_view(normal).substr(begin, end - begin));
      begin = end > begin ? end : space_end;
    }
  };
  std::vector<Letters> words;
  for (const CountedWord& word : count_words(texts, {[&](std::string_view part) { return plain.complete_prefix(part); }, count}))
    words.push_back({codes_of(word.word), word.count});
  return words;
}

// The most frequent characters; of equally frequent ones the smaller code points.
std::set<char32_t> alphabet_of(const std::vector<Letters>& words, int64_t most) {
  std::map<char32_t, int64_t> counts;
  for (const Letters& word : words)
    for (const char32_t code : word.codes) counts[code] += word.count;
  std::vector<std::pair<char32_t, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (static_cast<int64_t>(sorted.size()) > most) sorted.resize(static_cast<size_t>(most));
  std::set<char32_t> alphabet;
  for (const auto& [code, count] : sorted) alphabet.insert(code);
  return alphabet;
}

// Appends a piece for each character, and returns their ids.
std::map<char32_t, uint32_t> append_letters(
    const std::set<char32_t>& letters, const std::string& prefix, std::vector<std::string>& pieces) {
  std::map<char32_t, uint32_t> ids;
  for (const char32_t code : letters) {
    ids[code] = static_cast<uint32_t>(pieces.size());
    append_utf8(code, pieces.emplace_back(prefix));
  }
  return ids;
}

// The words as pieces of one character each, which are appended to the pieces.
std::vector<PieceWord> as_pieces(const std::vector<Letters>& words, const std::string& prefix, std::vector<std::string>& pieces) {
  std::set<char32_t> all, inside;
  for (const Letters& word : words) {
    all.insert(word.codes.begin(), word.codes.end());
    inside.insert(word.codes.begin() + 1, word.codes.end());
  }
  const std::map<char32_t, uint32_t> first = append_letters(all, "", pieces), next = append_letters(inside, prefix, pieces);
  std::vector<PieceWord> result;
  for (const Letters& word : words) {
    result.push_back({{first.at(word.codes[0])}, word.count});
    for (size_t i = 1; i < word.codes.size(); ++i) result.back().pieces.push_back(next.at(word.codes[i]));
  }
  return result;
}

}  // namespace

std::shared_ptr<const Tokenizer> train_wordpiece(const Texts& texts, const TrainingOptions& options) {
  std::vector<std::string> pieces = special_pieces({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, options.special);
  const std::vector<AddedToken> added = as_added(pieces);
  WordPieceOptions wordpiece;
  wordpiece.text.lowercase = wordpiece.text.strip_accents = options.lowercase;
  const std::string& prefix = wordpiece.prefix;
  std::vector<Letters> words = count_letters(texts, WordPieceTokenizer(Vocabulary(pieces), added, wordpiece));
  const std::set<char32_t> alphabet = alphabet_of(words, options.alphabet);
  const auto is_unknown = [&](const Letters& word) {
    return !std::all_of(word.codes.begin(), word.codes.end(), [&](char32_t code) { return alphabet.contains(code); });
  };
  std::erase_if(words, is_unknown);
  std::vector<PieceWord> piece_words = as_pieces(words, prefix, pieces);
  check_size("wordpiece training", options, pieces.size());
  const auto join = [&](std::string_view left, std::string_view right) {
    return std::string(left).append(right.substr(right.starts_with(prefix) ? prefix.size() : 0));
  };
  learn_merges(std::move(piece_words), pieces, {static_cast<size_t>(options.vocab), options.min_count, join});
  return std::make_shared<WordPieceTokenizer>(Vocabulary(pieces), added, wordpiece);
}

std::shared_ptr<const Tokenizer> train_words(const Texts& texts, const TrainingOptions& options) {
  const std::string unknown = "<unk>";
  std::vector<std::string> pieces = special_pieces({unknown}, options.special);
  const std::vector<AddedToken> added = as_added(pieces);
  const WordTokenizer plain(Vocabulary(pieces), {}, unknown);
  const auto count = [](std::string_view part, int64_t offset, WordCounter& counter) {
    check_utf8("word tokenizer", part, offset);
    size_t position = 0;
    for (std::string_view word = next_spaced_word(part, position); !word.empty(); word = next_spaced_word(part, position))
      counter.add(word);
  };
  std::vector<CountedWord> words = count_words(texts, {[&](std::string_view part) { return plain.complete_prefix(part); }, count});
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
