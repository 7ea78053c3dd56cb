#include "data/tokenizers/training/training.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/words.h"

namespace ricci {
namespace {

// ---- Counting words. A text has far fewer distinct words than characters.

struct WordHash {
  using is_transparent = void;  // finds known words without a copy
  size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
};
using WordCounts = std::unordered_map<std::string, int64_t, WordHash, std::equal_to<>>;

void add(WordCounts& counts, std::string_view word, int64_t count = 1) {
  if (const auto found = counts.find(word); found != counts.end()) found->second += count;
  else counts.emplace(word, count);
}

using CountPiece = std::function<void(const DocumentPiece& piece, WordCounts& counts)>;
using Words = std::vector<std::pair<std::string, int64_t>>;

// Counts the words; each thread handles some of the pieces.
void count_pieces(std::vector<DocumentPiece>& pieces, const CountPiece& count_piece, std::vector<WordCounts>& counts) {
  const size_t lanes = counts.size();
  parallel_for(static_cast<int64_t>(lanes), 1, [&](int64_t begin, int64_t end) {
    for (auto lane = static_cast<size_t>(begin); lane < static_cast<size_t>(end); ++lane)
      for (size_t i = pieces.size() * lane / lanes; i < pieces.size() * (lane + 1) / lanes; ++i)
        about(pieces[i].place, [&] { count_piece(pieces[i], counts[lane]); });
  });
  pieces.clear();
}

// Counts words with all threads, and sorts them by their bytes.
Words count_words(const std::vector<Documents>& sources, const Tokenizer& tokenizer, const CountPiece& count_piece) {
  constexpr size_t bytes_at_once = 16 << 20, pieces_at_once = 1 << 16;
  std::vector<WordCounts> counts(static_cast<size_t>(thread_count()));
  // Frequent words are inserted early, but a bucket is searched from its last word, so buckets must be short.
  for (WordCounts& each : counts) each.max_load_factor(0.25F);
  std::vector<DocumentPiece> pieces;
  size_t bytes = 0;
  const auto complete_prefix = [&](std::string_view text) { return tokenizer.complete_prefix(text); };
  const auto add_piece = [&](const DocumentPiece& piece) {
    pieces.push_back(piece);
    bytes += piece.text.size();
    if (bytes < bytes_at_once && pieces.size() < pieces_at_once) return;
    count_pieces(pieces, count_piece, counts);
    bytes = 0;
  };
  for (const Documents& documents : sources) for_each_text(documents, complete_prefix, add_piece);
  count_pieces(pieces, count_piece, counts);
  for (size_t i = 1; i < counts.size(); ++i)
    for (const auto& [word, count] : counts[i]) add(counts[0], word, count);
  Words words(counts[0].begin(), counts[0].end());
  std::sort(words.begin(), words.end());
  return words;
}

// ---- The initial tokens of a vocabulary

// The special tokens without duplicates: first the kind's, then the requested ones.
std::vector<std::string> special_pieces(std::vector<std::string> pieces, const std::vector<std::string>& asked) {
  for (const std::string& piece : asked)
    if (std::find(pieces.begin(), pieces.end(), piece) == pieces.end()) pieces.push_back(piece);
  return pieces;
}

// Added tokens with the ids 0, 1, 2, ...
std::vector<AddedToken> as_added(const std::vector<std::string>& special) {
  std::vector<AddedToken> added;
  for (const std::string& piece : special) added.push_back({.id = static_cast<int64_t>(added.size()), .content = piece});
  return added;
}

// Error: the vocabulary is smaller than its initial tokens, or too large.
void check_size(const char* who, const TrainingOptions& options, size_t least) {
  if (options.vocab < static_cast<int64_t>(least))
    fail("{}: the vocabulary size is {}, expected at least {}, the number of tokens before the first merge", {who, options.vocab, least});
  if (options.vocab > kMaxPieces) fail("{}: the vocabulary size is {}, expected at most {}", {who, options.vocab, kMaxPieces});
}

// The special tokens, then a token for each byte.
std::vector<std::string> byte_pieces(const std::vector<std::string>& special) {
  std::vector<std::string> pieces = special, letters;
  for (int byte = 0; byte < 256; ++byte) letters.push_back(byte_to_letter(byte));
  std::sort(letters.begin(), letters.end());
  pieces.insert(pieces.end(), letters.begin(), letters.end());
  return pieces;
}

// If each line ends with a token, words do not contain line ends.
Words count_bpe_words(const std::vector<Documents>& sources, const TrainingOptions& options) {
  const BpeTokenizer bytes(Vocabulary(byte_pieces({})), {}, {}, {.pattern = options.pattern});
  return count_words(sources, bytes, [&](const DocumentPiece& piece, WordCounts& counts) {
    for (std::string_view rest = piece.text; !rest.empty();) {
      const std::string_view line = options.lines ? rest.substr(0, rest.find('\n')) : rest;
      for (size_t begin = 0, end = 0; begin < line.size(); begin = end) {
        end = options.pattern->word_end(line, begin);
        add(counts, line.substr(begin, end - begin));
      }
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
  });
}

// Returns true for each id that the texts contain.
std::vector<bool> find_used_pieces(const Documents& documents, const Tokenizer& tokenizer) {
  std::vector<bool> seen(static_cast<size_t>(tokenizer.vocab_size()));
  const auto complete_prefix = [&](std::string_view text) { return tokenizer.complete_prefix(text); };
  for_each_text(documents, complete_prefix, [&](const DocumentPiece& piece) {
    const auto ids = encode(tokenizer, {&piece, 1});
    for (const int64_t id : ids[0]) seen[static_cast<size_t>(id)] = true;
  });
  return seen;
}

void keep(const Vocabulary& vocabulary, std::string_view piece, std::vector<bool>& kept) {
  if (const int32_t id = vocabulary.find(piece); id >= 0) kept[static_cast<size_t>(id)] = true;
}

// Keeps the tokens of bytes, and the two parts of each token that is kept. The parts usually come from earlier merges.
void keep_parts(const BpeTokenizer& tokenizer, std::vector<bool>& kept) {
  for (int byte = 0; byte < 256; ++byte) keep(tokenizer.vocabulary(), tokenizer.byte_piece(byte), kept);
  keep(tokenizer.vocabulary(), tokenizer.options().first, kept);
  const std::span<const Merges::Merge> merges = tokenizer.merges().all();
  for (bool found = true; found;) {
    found = false;
    for (size_t i = merges.size(); i-- > 0;)
      for (const uint32_t part : {merges[i].left, merges[i].right})
        if (kept[merges[i].merged] && !kept[part]) kept[part] = found = true;
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> train_bpe(const std::vector<Documents>& sources, const TrainingOptions& options) {
  const std::vector<std::string> special = special_pieces({}, options.special);
  std::vector<std::string> pieces = byte_pieces(special);
  check_size("bpe training", options, pieces.size());
  std::array<uint32_t, 256> id_of_byte{};
  for (size_t id = special.size(); id < pieces.size(); ++id)
    id_of_byte[static_cast<unsigned char>(letters_to_bytes(pieces[id])->front())] = static_cast<uint32_t>(id);
  std::vector<PieceWord> words;
  for (const auto& [word, count] : count_bpe_words(sources, options)) {
    words.push_back({{}, count});
    for (const char byte : word) words.back().pieces.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
  }
  std::vector<BpeTokenizer::Pair> pairs;
  for (const Merges::Merge& merge : learn_merges(std::move(words), pieces, static_cast<size_t>(options.vocab), options.min_count))
    pairs.emplace_back(pieces[merge.left], pieces[merge.right]);
  return std::make_shared<BpeTokenizer>(Vocabulary(pieces), pairs, as_added(special), BpeOptions{.pattern = options.pattern});
}

std::shared_ptr<const Tokenizer> train_words(const std::vector<Documents>& sources, const TrainingOptions& options) {
  const std::string unknown = "<unk>";
  std::vector<std::string> pieces = special_pieces({unknown}, options.special);
  const std::vector<AddedToken> added = as_added(pieces);
  const WordTokenizer plain(Vocabulary(pieces), {}, unknown);
  Words words = count_words(sources, plain, [](const DocumentPiece& piece, WordCounts& counts) {
    check_utf8("word tokenizer", piece.text, piece.first_byte);
    size_t position = 0;
    for (std::string_view word = next_spaced_word(piece.text, position); !word.empty(); word = next_spaced_word(piece.text, position))
      add(counts, word);
  });
  std::stable_sort(words.begin(), words.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (options.vocab > 0) check_size("word training", options, pieces.size());
  const size_t most = options.vocab > 0 ? static_cast<size_t>(options.vocab) : static_cast<size_t>(kMaxPieces);
  const size_t special = pieces.size();
  for (const auto& [word, count] : words) {
    const bool is_new = std::find(pieces.begin(), pieces.begin() + special, word) == pieces.begin() + special;
    if (is_new && count >= options.min_count && pieces.size() < most) pieces.push_back(word);
  }
  // <unk> is found only as a full word; the other special tokens are also found inside words.
  const std::vector<AddedToken> found(added.begin() + 1, added.end());
  return std::make_shared<WordTokenizer>(Vocabulary(pieces), found, unknown);
}

// ---- Restricting

std::shared_ptr<const Tokenizer> restrict_to(const Documents& documents, const Tokenizer& tokenizer) {
  const auto* const old = dynamic_cast<const PieceTokenizer*>(&tokenizer);
  if (!old) fail("restrict: expected a bpe, wordpiece or word tokenizer, got a {} tokenizer", {tokenizer.name()});
  std::vector<bool> kept = find_used_pieces(documents, tokenizer);
  std::vector<AddedToken> added = old->added_tokens();
  for (const AddedToken& token : added) kept[static_cast<size_t>(token.id)] = true;
  keep(old->vocabulary(), old->unknown(), kept);
  keep(old->vocabulary(), old->eos_piece(), kept);
  if (const auto* const bpe = dynamic_cast<const BpeTokenizer*>(old)) keep_parts(*bpe, kept);
  std::vector<std::string> pieces;
  for (int64_t id = 0; id < old->model_size(); ++id)
    if (kept[static_cast<size_t>(id)]) pieces.emplace_back(old->vocabulary().piece(id));
  Vocabulary vocabulary(pieces);
  int64_t next = vocabulary.size();  // the next id of a token that the model does not know
  for (AddedToken& token : added) token.id = token.id < old->model_size() ? vocabulary.find(token.content) : next++;
  const auto restricted = old->with_vocabulary(std::move(vocabulary), std::move(added));
  if (old->eos() != Eos::none) restricted->set_eos(old->eos(), old->eos_piece());
  return restricted;
}

}  // namespace ricci
