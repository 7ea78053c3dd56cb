#include "data/tokenizers/vocabulary.h"

#include <algorithm>

#include "core/error.h"
#include "core/json/value.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {

Vocabulary::Vocabulary(const std::vector<std::string>& pieces) {
  pieces_.reserve(pieces.size());
  ids_.reserve(pieces.size());
  for (const std::string& piece : pieces) add(piece, size());
}

Vocabulary Vocabulary::of_json(const JsonValue& object) {
  const int64_t most = std::min(kMaxPieces, 2 * static_cast<int64_t>(object.keys().size()) + kSpareIds);
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(object.keys().size());
  for (size_t i = 0; i < object.keys().size(); ++i) {
    const std::string& piece = object.keys()[i];
    if (!object.items()[i].is_integer()) fail("vocabulary: the id of '{}' is not an integer", {one_line(piece)});
    const int64_t id = object.items()[i].integer();
    if (id < 0 || id >= most)
      fail("vocabulary: the id {} of '{}', one of {} pieces, is not in 0 ... {}", {id, one_line(piece), object.keys().size(), most - 1});
    vocabulary.add(piece, id);
  }
  return vocabulary;
}

int32_t Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? -1 : found->second;
}

void Vocabulary::add(std::string_view piece, int64_t id) {
  if (id >= kMaxPieces) fail("vocabulary: more than {} pieces", {kMaxPieces});
  if (const int32_t before = find(piece); before >= 0) fail("vocabulary: '{}' has the ids {} and {}", {one_line(piece), before, id});
  if (id >= size()) pieces_.resize(static_cast<size_t>(id) + 1, nullptr);
  const std::string*& place = pieces_[static_cast<size_t>(id)];
  if (place) fail("vocabulary: '{}' and '{}' have the same id {}", {one_line(*place), one_line(piece), id});
  place = &texts_.emplace_back(piece);
  ids_.emplace(*place, static_cast<int32_t>(id));
}

namespace {

// The class of the character that ends before byte `position`, 0 at the start of the text.
uint8_t class_before(std::string_view text, size_t position, size_t* begin) {
  const Utf8Character character = decode_utf8_before(text, position);
  *begin = position - character.bytes;
  return character.bytes > 0 ? unicode_classes()[character.code] : 0;
}

uint8_t class_at(std::string_view text, size_t position, size_t* end) {
  const Utf8Character character = position < text.size() ? decode_utf8(text, position) : Utf8Character();
  *end = position + character.bytes;
  return character.bytes > 0 ? unicode_classes()[character.code] : 0;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const Utf8Character before = decode_utf8_before(text, begin), after = end < text.size() ? decode_utf8(text, end) : Utf8Character();
  const auto is_word = [](const Utf8Character& character) { return character.bytes > 0 && is_word_character(character.code); };
  return !is_word(before) && !is_word(after);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (const AddedToken& token : tokens_) {
    if (token.content.empty()) fail("added tokens: the one with id {} is empty", {token.id});
    starts_[static_cast<unsigned char>(token.content[0])] = true;
  }
  std::stable_sort(
      tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) { return a.content.size() > b.content.size(); });
}

AddedTokens::Match AddedTokens::find(std::string_view text, size_t from, size_t position) const {
  if (tokens_.empty()) return {text.size(), text.size(), -1, text.size()};
  for (; position < text.size(); ++position) {
    if (!starts_[static_cast<unsigned char>(text[position])]) continue;
    for (const AddedToken& token : tokens_) {
      if (text.compare(position, token.content.size(), token.content) != 0) continue;
      Match match{std::max(position, from), position + token.content.size(), token.id, position + token.content.size()};
      if (token.single_word && !stands_alone(text, position, match.end)) {
        position = match.end - 1;
        break;
      }
      size_t next = 0;
      while (token.lstrip && match.begin > from && (class_before(text, match.begin, &next) & unicode::space))
        match.begin = std::max(next, from);
      while (token.rstrip && match.end < text.size() && (class_at(text, match.end, &next) & unicode::space)) match.end = next;
      return match;
    }
  }
  return {text.size(), text.size(), -1, text.size()};
}

bool AddedTokens::may_straddle(std::string_view text, size_t position) const {
  for (const AddedToken& token : tokens_) {
    const size_t length = token.content.size();
    // The neighbours of a token that is a single word count, too.
    const size_t last = token.single_word ? position : position - 1;
    for (size_t begin = position - std::min(position, length); begin <= last; ++begin) {
      const size_t end = std::min(begin + length, text.size());
      const bool reaches = begin + length > position || ((token.rstrip || token.single_word) && begin + length == position);
      if (reaches && text.substr(begin, end - begin) == std::string_view(token.content).substr(0, end - begin)) return true;
    }
  }
  return false;
}

}  // namespace ricci
