#include "data/tokenizers/words/wordpiece_tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "core/error.h"
#include "data/tokenizers/json/write.h"
#include "data/tokenizers/unicode/classes.h"
#include "data/tokenizers/utf8.h"

namespace ricci {
namespace {

constexpr int64_t kMaxLetters = 1000;  // of a word

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, WordPieceOptions options)
    : PieceTokenizer(std::move(vocabulary), std::move(added),
          [text = options.text](std::string_view piece, int64_t offset) { return text.normalize(piece, offset); }),
      options_(std::move(options)),
      unknown_(this->vocabulary().find(options_.unknown)) {
  if (unknown_ < 0) fail("wordpiece tokenizer: '{}', for unknown words, is not in the vocabulary", {one_line(options_.unknown)});
  if (options_.prefix.empty()) fail("wordpiece tokenizer: the prefix of pieces that go on with a word is empty");
  if (options_.longest_word < 1 || options_.longest_word > kMaxLetters)
    fail("wordpiece tokenizer: words of {} characters, expected 1 to {}", {options_.longest_word, kMaxLetters});
  const Vocabulary& pieces = this->vocabulary();
  std::set<size_t, std::greater<>> lengths, going_on;
  for (int64_t id = 0; id < pieces.size(); ++id) {
    const std::string_view piece = pieces.piece(id);
    if (!piece.empty()) lengths.insert(piece.size());
    if (piece.size() > options_.prefix.size() && piece.starts_with(options_.prefix)) going_on.insert(piece.size() - options_.prefix.size());
    if (piece.size() > options_.prefix.size() && piece.starts_with(options_.prefix))
      going_on_.emplace(piece.substr(options_.prefix.size()), static_cast<int32_t>(id));
  }
  lengths_.assign(lengths.begin(), lengths.end());
  lengths_going_on_.assign(going_on.begin(), going_on.end());
}

std::string WordPieceTokenizer::to_json() const { return json_of(*this); }

void WordPieceTokenizer::append_word(std::string_view word, std::vector<int64_t>& ids) const {
  const size_t before = ids.size();
  const auto unknown = [&] {
    ids.resize(before);
    ids.push_back(unknown_);
  };
  if (count_characters(word) > options_.longest_word) return unknown();
  for (size_t begin = 0; begin < word.size();) {
    const std::string_view rest = word.substr(begin);
    size_t length = 0;
    for (const size_t possible : begin == 0 ? lengths_ : lengths_going_on_) {
      if (possible > rest.size()) continue;
      const std::string_view piece = rest.substr(0, possible);
      const auto found = begin > 0 ? going_on_.find(piece) : going_on_.end();
      int32_t id = begin == 0 ? vocabulary().find(piece) : -1;
      if (found != going_on_.end()) id = found->second;
      if (id < 0) continue;
      ids.push_back(id);
      length = possible;
      break;
    }
    if (length == 0) return unknown();
    begin += length;
  }
}

void WordPieceTokenizer::append_plain(std::string_view text, int64_t, std::vector<int64_t>& ids) const {
  const WordCaches::Loan loan(caches_);
  WordCache& cache = *loan;
  for (size_t at = 0; at < text.size();) {
    size_t space_end = 0;
    const size_t end = bert_word_end(text, at, space_end);
    const std::string_view word = text.substr(at, end - at);
    if (word.empty()) {
      at = space_end;
      continue;
    }
    const WordCache::Key key = word.size() <= WordCache::kLongestWord ? WordCache::key_of(word, text.size() - at) : WordCache::Key{};
    const std::span<const uint32_t> known = word.size() <= WordCache::kLongestWord ? cache.find(key) : std::span<const uint32_t>();
    const size_t before = ids.size();
    if (known.empty()) append_word(word, ids);
    for (const uint32_t id : known) ids.push_back(id);
    if (known.empty() && word.size() <= WordCache::kLongestWord) cache.keep(key, std::span(ids).subspan(before));
    at = end;
  }
}

// ASCII's blanks, line ends and signs end a word, whatever stands around them.
bool WordPieceTokenizer::may_cut(std::string_view text, size_t at) const {
  const char c = text[at];
  const bool letter = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || (c > ' ' && c < 0x7f && !letter);
}

// So do the others, and Chinese characters that are words of their own. Accents do not wander past them.
size_t WordPieceTokenizer::complete_prefix_by_splitting(std::string_view text) const {
  const uint8_t ends = unicode::space | unicode::punctuation | (options_.text.ideographs ? unicode::ideograph : 0);
  for (size_t at = text.size(); at-- > 1;) {
    const Utf8Character character = decode_utf8(text, at);
    const uint8_t kind = character.bytes > 0 ? unicode_classes()[character.code] : 0;
    if ((kind & ends) && !(kind & unicode::other)) return at;  // control characters may be left out of the normal form
  }
  return 0;
}

void WordPieceTokenizer::append_text(int64_t id, DecodeState& state, std::string& text) const {
  // What Hugging Face's decoder draws to the word before it.
  static constexpr std::string_view kClose[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
  const std::string_view piece = vocabulary().piece(id);
  const bool goes_on = !state.at_start && piece.starts_with(options_.prefix);
  const auto opens = [&](std::string_view close) { return piece.starts_with(close); };
  const bool close = goes_on || (options_.cleanup && std::any_of(std::begin(kClose), std::end(kClose), opens));
  if (!state.at_start && !close) text += ' ';
  text += goes_on ? piece.substr(options_.prefix.size()) : piece;
  state.at_start = false;
}

std::vector<AddedToken> bert_special_tokens(const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  for (const char* content : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    if (const int32_t id = vocabulary.find(content); id >= 0) tokens.push_back({.id = id, .content = content});
  std::sort(tokens.begin(), tokens.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return tokens;
}

}  // namespace ricci
