#include "data/tokenizers/bpe/bpe_tokenizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <queue>

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {

// ---- Merges. Short words are searched from end to end for every merge. For long words, as in a text without spaces, a heap of possible
// merges avoids time quadratic in their length.
namespace {

constexpr size_t kLongestShort = 48;

uint64_t as_pair(uint32_t left, uint32_t right) { return static_cast<uint64_t>(left) << 32 | right; }
uint64_t mix(uint64_t pair) { return (pair ^ pair >> 32) * 0x9e3779b97f4a7c15u; }

}  // namespace

Merges::Merges(std::vector<Merge> merges) : merges_(std::move(merges)) {
  const size_t places = std::bit_ceil(2 * merges_.size() + 2);
  shift_ = 64 - std::countr_zero(places);
  slots_.resize(places);
  for (size_t rank = 0; rank < merges_.size(); ++rank) {
    const Merge& merge = merges_[rank];
    // A duplicate pair keeps its last rank.
    slots_[find_slot(merge.left, merge.right)] = {as_pair(merge.left, merge.right), static_cast<uint32_t>(rank)};
  }
}

// Returns the slot of the pair, or the empty slot for it.
size_t Merges::find_slot(uint32_t left, uint32_t right) const {
  const uint64_t pair = as_pair(left, right);
  size_t place = mix(pair) >> shift_;
  while (slots_[place].rank != kNone && slots_[place].pair != pair) place = (place + 1) & (slots_.size() - 1);
  return place;
}

size_t Merges::apply(std::span<uint32_t> pieces) const { return pieces.size() <= kLongestShort ? apply_short(pieces) : apply_long(pieces); }

size_t Merges::apply_short(std::span<uint32_t> pieces) const {
  std::array<uint32_t, kLongestShort> ranks;  // rank of the pair of each token and the next
  size_t count = pieces.size();
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = find_rank(pieces[i], pieces[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (ranks[i] < ranks[best]) best = i;
    if (ranks[best] == kNone) break;
    pieces[best] = merges_[ranks[best]].merged;
    std::copy(pieces.begin() + static_cast<int64_t>(best) + 2, pieces.begin() + static_cast<int64_t>(count),
        pieces.begin() + static_cast<int64_t>(best) + 1);
    --count;
    if (best + 1 < count) {
      std::copy(ranks.begin() + best + 2, ranks.begin() + count, ranks.begin() + best + 1);
      ranks[best] = find_rank(pieces[best], pieces[best + 1]);
    }
    if (best > 0) ranks[best - 1] = find_rank(pieces[best - 1], pieces[best]);
  }
  return count;
}

size_t Merges::apply_long(std::span<uint32_t> pieces) const {
  constexpr uint32_t gone = UINT32_MAX;  // a token merged into the previous one
  const auto count = static_cast<uint32_t>(pieces.size());
  std::vector<uint32_t> before(count), next(count);
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> possible;  // rank, then position
  const auto offer = [&](uint32_t i) {
    if (next[i] >= count) return;
    if (const uint32_t rank = find_rank(pieces[i], pieces[next[i]]); rank != kNone) possible.push(as_pair(rank, i));
  };
  for (uint32_t i = 0; i < count; ++i) {
    before[i] = i - 1;
    next[i] = i + 1;
  }
  for (uint32_t i = 0; i < count; ++i) offer(i);
  while (!possible.empty()) {
    const auto rank = static_cast<uint32_t>(possible.top() >> 32), i = static_cast<uint32_t>(possible.top());
    possible.pop();
    // Skips pairs that other merges changed.
    if (pieces[i] == gone || next[i] >= count || find_rank(pieces[i], pieces[next[i]]) != rank) continue;
    pieces[i] = merges_[rank].merged;
    pieces[next[i]] = gone;
    next[i] = next[next[i]];
    if (next[i] < count) before[next[i]] = i;
    offer(i);
    if (i > 0) offer(before[i]);
  }
  size_t left = 0;
  for (uint32_t i = 0; i < count; i = next[i]) pieces[left++] = pieces[i];
  return left;
}

// ---- The tokenizer
namespace {

uint32_t find_id(const Vocabulary& vocabulary, const std::string& piece, size_t merge) {
  const int32_t id = vocabulary.find(piece);
  if (id < 0) fail("bpe tokenizer: merge {} needs the token '{}', which is not in the vocabulary", {merge, one_line(piece)});
  return static_cast<uint32_t>(id);
}

Merges make_merges(const Vocabulary& vocabulary, const std::vector<BpeTokenizer::Pair>& pairs) {
  std::vector<Merges::Merge> merges;
  merges.reserve(pairs.size());
  for (const auto& [left, right] : pairs) {
    const size_t rank = merges.size();
    merges.push_back({find_id(vocabulary, left, rank), find_id(vocabulary, right, rank), find_id(vocabulary, left + right, rank)});
  }
  return Merges(std::move(merges));
}

std::string composed(std::string_view text, int64_t offset, bool) {
  check_utf8("bpe tokenizer", text, offset);
  return compose_characters(text);
}

constexpr std::string_view kUnderscore = "▁";

std::string with_underscores(std::string_view text, bool prepends) {
  return (prepends ? std::string(kUnderscore) : "") + replaced(text, " ", kUnderscore);
}

std::function<std::string(std::string_view, int64_t, bool)> normal_form_of(const BpeOptions& options) {
  if (options.compose) return composed;
  const bool prepends = options.underscores == Underscores::prepended;
  if (!prepends && options.underscores != Underscores::replaced) return {};
  return [prepends](std::string_view text, int64_t, bool starts) { return with_underscores(text, prepends && starts); };
}

// The end of a word: leading underscores, then everything up to the next underscore.
size_t underscore_end(std::string_view text, size_t position) {
  while (text.substr(position).starts_with(kUnderscore)) position += kUnderscore.size();
  return std::min(text.find(kUnderscore, position), text.size());
}
constexpr SplitPattern kUnderscorePattern{"underscore", "", false, underscore_end};

}  // namespace

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, const std::vector<Pair>& merges, std::vector<AddedToken> added, BpeOptions options)
    : PieceTokenizer(std::move(vocabulary), std::move(added), normal_form_of(options)),
      options_(std::move(options)),
      merges_(make_merges(this->vocabulary(), merges)) {
  const Vocabulary& pieces = this->vocabulary();
  const int32_t unknown = options_.unknown.empty() ? -1 : pieces.find(options_.unknown);
  if (!options_.unknown.empty() && unknown < 0)
    fail("bpe tokenizer: the token '{}' for unknown bytes is not in the vocabulary", {one_line(options_.unknown)});
  if (!options_.first.empty() && pieces.find(options_.first) < 0)
    fail("bpe tokenizer: the token '{}' at the start of every text is not in the vocabulary", {one_line(options_.first)});
  bytes_of_id_.resize(static_cast<size_t>(pieces.size()));
  for (int64_t id = 0; id < pieces.size(); ++id) {
    const std::string piece(pieces.piece(id));
    // No merge leads to a token with other letters, so such a token is decoded as written.
    bytes_of_id_[static_cast<size_t>(id)] = is_byte_level() ? letters_to_bytes(piece).value_or(piece) : replaced(piece, kUnderscore, " ");
  }
  for (const AddedToken& token : added_tokens())
    if (is_byte_level()) bytes_of_id_[static_cast<size_t>(token.id)] = token.content;
  for (int byte = 0; byte < 256; ++byte) {
    const int32_t id = find_in_model(byte_piece(byte));
    id_of_byte_[static_cast<size_t>(byte)] = id >= 0 ? id : unknown;
    if (is_byte_level()) continue;
    if (id < 0) fail("bpe tokenizer: byte_fallback needs the token {}", {byte_piece(byte)});
    bytes_of_id_[static_cast<size_t>(id)] = static_cast<char>(byte);
  }
  if (is_byte_level()) return;
  options_.pattern = &kUnderscorePattern;
  check_underscores();
}

std::string BpeTokenizer::byte_piece(int byte) const {
  return is_byte_level() ? byte_to_letter(byte) : format_message("<0x{:02X}>", {byte});
}

void BpeTokenizer::check_underscores() const {
  if (find_in_model(kUnderscore) < 0) fail("bpe tokenizer: byte_fallback needs the token {}", {kUnderscore});
  for (const Merges::Merge& merge : merges_.all()) {
    const std::string_view left = vocabulary().piece(merge.left), right = vocabulary().piece(merge.right);
    if (right.starts_with(kUnderscore) && !left.ends_with(kUnderscore))
      fail("bpe tokenizer: the merge of '{}' and '{}' crosses a blank, so texts cannot be divided", {one_line(left), one_line(right)});
  }
}

Marks BpeTokenizer::model_marks() const {
  Marks marks = PieceTokenizer::model_marks();
  if (!options_.first.empty()) marks.first = find(options_.first);
  return marks;
}

std::shared_ptr<PieceTokenizer> BpeTokenizer::with_vocabulary(Vocabulary pieces, std::vector<AddedToken> added) const {
  std::vector<Pair> merges;
  for (const Merges::Merge& merge : merges_.all()) {
    const std::string left(vocabulary().piece(merge.left)), right(vocabulary().piece(merge.right));
    if (pieces.find(left) >= 0 && pieces.find(right) >= 0 && pieces.find(left + right) >= 0) merges.emplace_back(left, right);
  }
  BpeOptions options = options_;
  options.post_processor = nullptr;  // contains ids; the template for options.first is written again
  const auto is_first = [&](const AddedToken& token) { return token.content == options_.first; };
  if (pieces.find(options.first) < 0 && std::none_of(added.begin(), added.end(), is_first)) options.first.clear();
  auto other = std::make_shared<BpeTokenizer>(std::move(pieces), merges, std::move(added), std::move(options));
  for (size_t byte = 0; byte < id_of_byte_.size(); ++byte)
    if (other->id_of_byte_[byte] < 0 && id_of_byte_[byte] >= 0)
      fail("bpe tokenizer: the added token '{}' is also the token of byte 0x{:02x}, which other texts need; leave it out of the added "
           "tokens",
          {one_line(vocabulary().piece(id_of_byte_[byte])), byte});
  return other;
}

// Stores the tokens of a word before any merge. Returns their number.
size_t BpeTokenizer::divide(std::string_view word, int64_t offset, std::span<uint32_t> pieces) const {
  size_t count = 0;
  for (size_t begin = 0, bytes = 1; begin < word.size(); begin += bytes) {
    if (!is_byte_level()) bytes = std::max<size_t>(decode_utf8(word, begin).bytes, 1);
    const int32_t character = is_byte_level() ? -1 : find_in_model(word.substr(begin, bytes));
    for (const char c : word.substr(begin, character < 0 ? bytes : 1)) {
      const int32_t id = character < 0 ? id_of_byte_[static_cast<unsigned char>(c)] : character;
      if (id < 0)
        fail("bpe tokenizer: the vocabulary has no token for byte {} (value 0x{:02x})",
            {offset + static_cast<int64_t>(begin), static_cast<unsigned char>(c)});
      pieces[count++] = static_cast<uint32_t>(id);
    }
  }
  return count;
}

void BpeTokenizer::append_word(std::string_view word, int64_t offset, std::vector<int64_t>& ids) const {
  if (options_.ignore_merges) {
    if (const int32_t id = find_in_model(bytes_to_letters(word)); id >= 0) return ids.push_back(id);
  }
  constexpr size_t usual = 64;
  std::array<uint32_t, usual> few;
  std::vector<uint32_t> many;
  if (word.size() > usual) many.resize(word.size());
  const std::span<uint32_t> pieces = word.size() > usual ? std::span(many) : std::span(few).first(word.size());
  const size_t count = merges_.apply(pieces.first(divide(word, offset, pieces)));
  ids.insert(ids.end(), pieces.begin(), pieces.begin() + static_cast<int64_t>(count));
}

void BpeTokenizer::append_words(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const {
  WordCache& cache = cache_owner_.cache();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = options_.pattern->word_end(text, begin);
    const auto encode = [&] { append_word(text.substr(begin, end - begin), offset + static_cast<int64_t>(begin), ids); };
    cache.append(text.substr(begin), end - begin, ids, encode);
    begin = end;
  }
}

void BpeTokenizer::append_plain(std::string_view text, int64_t offset, bool starts, std::vector<int64_t>& ids) const {
  if (options_.underscores >= Underscores::never) {
    const bool can_prepend = options_.underscores == Underscores::always || (options_.underscores == Underscores::first && starts);
    append_words(with_underscores(text, can_prepend && !text.starts_with(' ') && !text.starts_with(kUnderscore)), offset, ids);
  } else if (options_.add_prefix_space && !text.starts_with(' ')) {
    append_words(" " + std::string(text), offset - 1, ids);
  } else {
    append_words(text, offset, ids);
  }
}

// Decides by the two characters next to the position. With underscores, a word begins at an underscore after any other character.
// Normalization can put an underscore after an added token, so a text is not cut there. Without underscores, a word ends between a letter
// or number and a character of another class, and before a blank that does not follow white space. The two characters must stay separate
// when normalized, and with add_prefix_space the second must be a blank.
bool BpeTokenizer::can_cut(std::string_view text, size_t position) const {
  const Utf8Character after = decode_utf8(text, position), before = decode_utf8_before(text, position);
  if (after.bytes == 0 || before.bytes == 0) return false;
  if (!is_byte_level()) {
    const auto is_blank = [](char32_t code) { return code == U' ' || code == U'▁'; };
    const auto ends_here = [&](const AddedToken& token) { return token.content.back() == text[position - 1]; };
    const bool follows_token = std::any_of(added_tokens().begin(), added_tokens().end(), ends_here);
    return is_blank(after.code) && !is_blank(before.code) && !(options_.underscores == Underscores::prepended && follows_token);
  }
  const uint8_t kind_before = unicode_classes()[before.code], kind_after = unicode_classes()[after.code];
  const auto both = [&](uint8_t kinds) { return (kind_before & kinds) && (kind_after & kinds); };
  const bool word_ends = (kind_before & (unicode::letter | unicode::number)) && !both(unicode::letter | unicode::number);
  const bool number_ends = options_.pattern->divides_numbers && both(unicode::number);
  const bool word_begins = after.code == ' ' && !(kind_before & unicode::space);
  return (word_ends || number_ends || word_begins) && (!options_.add_prefix_space || after.code == ' ') &&
         (!options_.compose || composes_apart(before.code, after.code));
}

void BpeTokenizer::append_text(int64_t id, DecodeState& state, std::string& text) const {
  const std::string_view bytes = bytes_of_id_[static_cast<size_t>(id)];
  text += options_.drops_blank && state.at_start && bytes.starts_with(' ') ? bytes.substr(1) : bytes;
  state.at_start = false;
}

namespace {

constexpr bool prints(int byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae; }

constexpr std::array<char16_t, 256> kLetters = [] {
  std::array<char16_t, 256> letters{};
  char16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) letters[static_cast<size_t>(byte)] = prints(byte) ? static_cast<char16_t>(byte) : next++;
  return letters;
}();

constexpr char32_t kPastLetters = 0x100 + 68;

constexpr std::array<int16_t, kPastLetters> kBytes = [] {
  std::array<int16_t, kPastLetters> bytes{};
  bytes.fill(-1);
  for (size_t byte = 0; byte < 256; ++byte) bytes[kLetters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}();

}  // namespace

std::string bytes_to_letters(std::string_view bytes) {
  std::string letters;
  letters.reserve(2 * bytes.size());
  for (const char byte : bytes) append_utf8(kLetters[static_cast<unsigned char>(byte)], letters);
  return letters;
}

std::string byte_to_letter(int byte) {
  std::string letter;
  append_utf8(kLetters[static_cast<size_t>(byte)], letter);
  return letter;
}

std::optional<std::string> letters_to_bytes(std::string_view letters) {
  std::string bytes;
  for (size_t position = 0; position < letters.size();) {
    const Utf8Character letter = decode_utf8(letters, position);
    if (letter.bytes == 0 || letter.code >= kPastLetters || kBytes[letter.code] < 0) return {};
    bytes += static_cast<char>(kBytes[letter.code]);
    position += letter.bytes;
  }
  return bytes;
}

}  // namespace ricci
