#include "data/tokenizers/vocabulary.h"

#include <algorithm>

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {

Vocabulary::Vocabulary(const std::vector<std::string>& pieces) {
  pieces_.reserve(pieces.size());
  ids_.reserve(pieces.size());
  for (const std::string& piece : pieces) add(piece, size());
}

Vocabulary Vocabulary::of_json(const Json& object) {
  const int64_t most = std::min(kMaxPieces, 2 * static_cast<int64_t>(object.size()) + kSpareIds);
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(object.size());
  for (const auto& [piece, value] : object.get_ref<const Json::object_t&>()) {
    const std::optional<int64_t> id = as<int64_t>(value);
    if (!id) fail("vocabulary: the id of '{}' is not an integer", {one_line(piece)});
    if (*id < 0 || *id >= most)
      fail("vocabulary: the id {} of '{}', one of {} pieces, is not in 0 ... {}", {*id, one_line(piece), object.size(), most - 1});
    vocabulary.add(piece, *id);
  }
  return vocabulary;
}

int32_t Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? -1 : found->second;
}

void Vocabulary::add(std::string_view piece, int64_t id) {
  if (id >= kMaxPieces) fail("vocabulary: more than {} pieces", {kMaxPieces});
  const std::string& text = texts_.emplace_back(piece);
  const auto [known, is_new] = ids_.emplace(text, static_cast<int32_t>(id));
  if (!is_new) fail("vocabulary: '{}' has the ids {} and {}", {one_line(piece), known->second, id});
  if (id >= size()) pieces_.resize(static_cast<size_t>(id) + 1, nullptr);
  const std::string*& place = pieces_[static_cast<size_t>(id)];
  if (place) fail("vocabulary: '{}' and '{}' have the same id {}", {one_line(*place), one_line(piece), id});
  place = &text;
}

namespace {

bool is_space(const Utf8Character& character) { return character.bytes > 0 && (unicode_classes()[character.code] & unicode::space) != 0; }

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const Utf8Character before = decode_utf8_before(text, begin), after = end < text.size() ? decode_utf8(text, end) : Utf8Character();
  const auto is_word = [](const Utf8Character& character) { return character.bytes > 0 && is_word_character(character.code); };
  return !is_word(before) && !is_word(after);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (const AddedToken& token : tokens_) starts_[static_cast<unsigned char>(token.content[0])] = true;
  std::stable_sort(
      tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) { return a.content.size() > b.content.size(); });
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t position) const {
  if (!starts_[static_cast<unsigned char>(text[position])]) return nullptr;
  for (const AddedToken& token : tokens_)
    if (text.compare(position, token.content.size(), token.content) == 0) return &token;
  return nullptr;
}

void AddedTokens::split(std::string_view text, const std::function<void(size_t begin, size_t end, int64_t id)>& use) const {
  size_t from = 0;  // the tokens before take the text up to here
  for (size_t position = 0; position < text.size() && !tokens_.empty();) {
    const AddedToken* const token = longest_at(text, position);
    if (!token) {
      ++position;
      continue;
    }
    size_t begin = position, end = position + token->content.size();
    position = end;  // also after one that is passed over
    if (token->single_word && !stands_alone(text, begin, end)) continue;
    if (token->lstrip) {
      for (Utf8Character space; begin > from && is_space(space = decode_utf8_before(text, begin));) begin -= space.bytes;
      begin = std::max(begin, from);
    }
    if (token->rstrip) {
      end = std::max(end, from);  // there is white space between the two
      for (Utf8Character space; end < text.size() && is_space(space = decode_utf8(text, end));) end += space.bytes;
    }
    if (begin >= end) continue;  // the token before took all of it
    if (begin > from) use(from, begin, -1);
    use(begin, end, token->id);
    from = end;
  }
  if (from < text.size()) use(from, text.size(), -1);
}

bool AddedTokens::may_straddle(std::string_view two_bytes) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const AddedToken& token) {
    const bool ends_before = token.content.back() == two_bytes.front(), begins_after = token.content.front() == two_bytes.back();
    return token.content.find(two_bytes) != std::string::npos || (token.rstrip && ends_before) ||
           (token.single_word && (ends_before || begins_after));
  });
}

}  // namespace ricci
