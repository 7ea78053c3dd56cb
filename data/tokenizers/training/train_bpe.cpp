#include <algorithm>
#include <array>

#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/training/common.h"
#include "data/tokenizers/training/pair_merging.h"
#include "data/tokenizers/training/training.h"

namespace ricci {
namespace {

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

// The lines of a part without their ends, or the part as a whole.
template <class Use> void for_each_unit(std::string_view part, const TrainingOptions& options, const Use& use) {
  while (options.lines) {
    const size_t end = part.find('\n');
    if (end == part.npos) break;
    use(part.substr(0, end));
    part.remove_prefix(end + 1);
  }
  use(part);
}

std::vector<CountedWord> count_bpe_words(const Texts& texts, const TrainingOptions& options) {
  const BpeTokenizer bytes(Vocabulary(byte_pieces({})), {}, {}, {.pattern = options.pattern});
  const auto count = [&](std::string_view part, int64_t, WordCounter& counter) {
    for_each_unit(part, options, [&](std::string_view unit) {
      for (size_t begin = 0; begin < unit.size();) {
        const size_t end = options.pattern->word_end(unit, begin);
        counter.add(unit.substr(begin, end - begin));
        begin = end;
      }
    });
  };
  return count_words(texts, {[&](std::string_view part) { return bytes.complete_prefix(part); }, count});
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
  const auto join = [](std::string_view left, std::string_view right) { return std::string(left).append(right); };
  std::vector<BpeTokenizer::Pair> pairs;
  for (const Merges::Merge& merge : learn_merges(std::move(words), pieces, {static_cast<size_t>(options.vocab), options.min_count, join}))
    pairs.emplace_back(pieces[merge.left], pieces[merge.right]);
  return std::make_shared<BpeTokenizer>(Vocabulary(pieces), pairs, as_added(special), BpeOptions{.pattern = options.pattern});
}

}  // namespace ricci
