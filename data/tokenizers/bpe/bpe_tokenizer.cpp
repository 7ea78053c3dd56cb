#include "data/tokenizers/bpe/bpe_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {

namespace {

uint32_t id_of(const Vocabulary& vocabulary, const std::string& piece, size_t merge) {
  const int32_t id = vocabulary.find(piece);
  if (id < 0) fail("bpe tokenizer: merge {} needs the piece '{}', which is not in the vocabulary", {merge, one_line(piece)});
  return static_cast<uint32_t>(id);
}

Merges merges_of(const Vocabulary& vocabulary, const std::vector<BpeTokenizer::Pair>& pairs) {
  std::vector<Merges::Merge> merges;
  merges.reserve(pairs.size());
  for (const auto& [left, right] : pairs) {
    const size_t rank = merges.size();
    merges.push_back({id_of(vocabulary, left, rank), id_of(vocabulary, right, rank), id_of(vocabulary, left + right, rank)});
  }
  return Merges(std::move(merges));
}

std::string composed(std::string_view text, int64_t offset) {
  check_utf8("bpe tokenizer", text, offset);
  return compose_characters(text);
}

}  // namespace

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, const std::vector<Pair>& merges, std::vector<AddedToken> added, BpeOptions options)
    : PieceTokenizer(std::move(vocabulary), std::move(added), options.compose ? NormalForm(composed) : NormalForm()),
      options_(std::move(options)),
      merges_(merges_of(this->vocabulary(), merges)) {
  const Vocabulary& pieces = this->vocabulary();
  const int32_t unknown = options_.unknown.empty() ? -1 : pieces.find(options_.unknown);
  if (!options_.unknown.empty() && unknown < 0)
    fail("bpe tokenizer: '{}', for what is unknown, is not in the vocabulary", {one_line(options_.unknown)});
  if (!options_.first.empty() && pieces.find(options_.first) < 0)
    fail("bpe tokenizer: '{}', which starts every text, is not in the vocabulary", {one_line(options_.first)});
  for (int byte = 0; byte < 256; ++byte) {
    const int32_t id = find_in_model(letter_of(byte));
    id_of_byte_[static_cast<size_t>(byte)] = id >= 0 ? id : unknown;
  }
  bytes_of_id_.resize(static_cast<size_t>(pieces.size()));
  // A piece with other letters can only be written as it is: no merge leads to it.
  for (int64_t id = 0; id < pieces.size(); ++id)
    bytes_of_id_[static_cast<size_t>(id)] = letters_to_bytes(pieces.piece(id)).value_or(std::string(pieces.piece(id)));
  for (const AddedToken& token : added_tokens()) bytes_of_id_[static_cast<size_t>(token.id)] = token.content;
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
  options.post_processor = nullptr;  // it holds ids; one for options.first is written again
  const auto is_first = [&](const AddedToken& token) { return token.content == options_.first; };
  if (pieces.find(options.first) < 0 && std::none_of(added.begin(), added.end(), is_first)) options.first.clear();
  auto other = std::make_shared<BpeTokenizer>(std::move(pieces), merges, std::move(added), std::move(options));
  for (size_t byte = 0; byte < id_of_byte_.size(); ++byte)
    if (other->id_of_byte_[byte] < 0 && id_of_byte_[byte] >= 0)
      fail("bpe tokenizer: the added token '{}' is also the piece of byte 0x{:02x}, which other texts need; leave it out of the added "
           "tokens",
          {one_line(vocabulary().piece(id_of_byte_[byte])), byte});
  return other;
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
  for (size_t i = 0; i < word.size(); ++i) {
    const int32_t id = id_of_byte_[static_cast<unsigned char>(word[i])];
    if (id < 0)
      fail("bpe tokenizer: the vocabulary has no piece for byte {} (value 0x{:02x})",
          {offset + static_cast<int64_t>(i), static_cast<unsigned char>(word[i])});
    pieces[i] = static_cast<uint32_t>(id);
  }
  const size_t count = merges_.apply(pieces);
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

void BpeTokenizer::append_plain(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const {
  if (options_.add_prefix_space && !text.starts_with(' ')) {
    append_words(" " + std::string(text), offset - 1, ids);
  } else {
    append_words(text, offset, ids);
  }
}

// Two neighbouring characters are enough: a word ends between a letter or number and something else, and before a blank that follows
// anything but white space. Words are found in the normal form, and what follows must begin with a blank if it would be given one.
bool BpeTokenizer::may_cut(std::string_view text, size_t position) const {
  const Utf8Character after = decode_utf8(text, position), before = decode_utf8_before(text, position);
  if (after.bytes == 0 || before.bytes == 0) return false;
  const uint8_t kind_before = unicode_classes()[before.code], kind_after = unicode_classes()[after.code];
  const auto both = [&](uint8_t kinds) { return (kind_before & kinds) && (kind_after & kinds); };
  const bool word_ends = (kind_before & (unicode::letter | unicode::number)) && !both(unicode::letter | unicode::number);
  const bool number_ends = options_.pattern->divides_numbers && both(unicode::number);
  const bool word_begins = after.code == ' ' && !(kind_before & unicode::space);
  return (word_ends || number_ends || word_begins) && (!options_.add_prefix_space || after.code == ' ') &&
         (!options_.compose || composes_apart(before.code, after.code));
}

void BpeTokenizer::append_text(int64_t id, DecodeState& state, std::string& text) const {
  text += bytes_of_id_[static_cast<size_t>(id)];
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

std::string letter_of(int byte) {
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
