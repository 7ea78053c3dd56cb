#include "data/tokenizers/piece_tokenizer.h"

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
      fail("vocabulary: the id {} of '{}', one of {} tokens, is outside 0 ... {}", {*id, one_line(piece), object.size(), most - 1});
    vocabulary.add(piece, *id);
  }
  return vocabulary;
}

int32_t Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? -1 : found->second;
}

void Vocabulary::add(std::string_view piece, int64_t id) {
  if (id >= kMaxPieces) fail("vocabulary: has more than {} tokens", {kMaxPieces});
  const std::string& text = texts_.emplace_back(piece);
  const auto [known, is_new] = ids_.emplace(text, static_cast<int32_t>(id));
  if (!is_new) fail("vocabulary: '{}' has two ids, {} and {}", {one_line(piece), known->second, id});
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

// Selects the tokens to find in the normalized text, or in the text itself.
template <class NormalForm>
std::vector<AddedToken> select_tokens(const std::vector<AddedToken>& tokens, const NormalForm& normal_form, bool normalized) {
  std::vector<AddedToken> chosen;
  for (AddedToken token : tokens) {
    if (token.normalized != normalized) continue;
    if (normalized && normal_form) token.content = normal_form(token.content, 0, true);
    if (!token.content.empty()) chosen.push_back(token);
  }
  return chosen;
}

bool is_ascii_word(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }

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
  size_t from = 0;  // end of the previous token
  for (size_t position = 0; position < text.size() && !tokens_.empty();) {
    const AddedToken* const token = longest_at(text, position);
    if (!token) {
      ++position;
      continue;
    }
    size_t begin = position, end = position + token->content.size();
    position = end;  // the search continues here even if the token is rejected
    if (token->single_word && !stands_alone(text, begin, end)) continue;
    if (token->lstrip) {
      for (Utf8Character space; begin > from && is_space(space = decode_utf8_before(text, begin));) begin -= space.bytes;
      begin = std::max(begin, from);
    }
    if (token->rstrip) {
      end = std::max(end, from);  // the previous token can end after this one
      for (Utf8Character space; end < text.size() && is_space(space = decode_utf8(text, end));) end += space.bytes;
    }
    if (begin >= end) continue;  // inside the previous token
    if (begin > from) use(from, begin, -1);
    use(begin, end, token->id);
    from = end;
  }
  if (from < text.size()) use(from, text.size(), -1);
}

bool AddedTokens::can_straddle(std::string_view two_bytes) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const AddedToken& token) {
    const bool ends_before = token.content.back() == two_bytes.front(), begins_after = token.content.front() == two_bytes[1];
    return token.content.find(two_bytes) != std::string::npos || (token.rstrip && ends_before) ||
           (token.single_word && (ends_before || begins_after));
  });
}

// ---- The tokenizer
PieceTokenizer::PieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, NormalForm normal_form)
    : vocabulary_(std::move(vocabulary)),
      model_size_(vocabulary_.size()),
      added_(std::move(added)),
      normal_form_(std::move(normal_form)),
      raw_(select_tokens(added_, normal_form_, false)),
      normalized_(select_tokens(added_, normal_form_, true)) {
  const int64_t most = vocabulary_.size() + static_cast<int64_t>(added_.size()) + kSpareIds;
  bool follow = vocabulary_.count() == vocabulary_.size();
  for (const AddedToken& token : added_) {
    if (token.content.empty()) fail("added tokens: the token with id {} is empty", {token.id});
    const int32_t known = vocabulary_.find(token.content);
    if (known >= 0 && known != token.id)
      fail("added tokens: '{}' has the id {}, expected {} as in the vocabulary", {one_line(token.content), token.id, known});
    if (token.id < 0 || token.id >= most)
      fail("added tokens: the id {} of '{}' is outside 0 ... {}", {token.id, one_line(token.content), most - 1});
    if (known >= 0) continue;
    follow = follow && token.id == vocabulary_.size();
    vocabulary_.add(token.content, token.id);
  }
  // Hugging Face's tokenizers renumber tokens that the model does not know. Tokens that would get different ids are added to the model's
  // vocabulary.
  if (!follow) model_size_ = vocabulary_.size();
  if (vocabulary_.size() == 0) fail("tokenizer: the vocabulary is empty");
}

void PieceTokenizer::append_model_ids(std::string_view piece, int64_t offset, bool starts, std::vector<int64_t>& ids) const {
  raw_.split(piece, [&](size_t from, size_t until, int64_t raw) {
    if (raw >= 0) return ids.push_back(raw);
    const std::string_view text = piece.substr(from, until - from);
    const int64_t place = offset + static_cast<int64_t>(from);
    const std::string normal_form = normal_form_ ? normal_form_(text, place, starts || from > 0) : "";
    const std::string_view normal = normal_form_ ? std::string_view(normal_form) : text;
    normalized_.split(normal, [&](size_t begin, size_t end, int64_t id) {
      if (id >= 0) ids.push_back(id);
      else append_plain(normal.substr(begin, end - begin), place + static_cast<int64_t>(begin), starts && from + begin == 0, ids);
    });
  });
}

size_t PieceTokenizer::model_prefix(std::string_view text) const {
  for (size_t position = text.size(); position-- > 1;)
    if (can_cut(text, position) && can_separate(text, position)) return position;
  return 0;
}

// True if the added tokens on each side of byte `position` do not depend on the other side.
bool PieceTokenizer::can_separate(std::string_view text, size_t position) const {
  const Utf8Character before = decode_utf8_before(text, position);
  if (before.bytes > 0 && (unicode_classes()[before.code] & unicode::space)) return false;  // a token can include this white space
  const std::string_view around = text.substr(position - 1, 2);
  if (raw_.can_straddle(around)) return false;
  if (normalized_.empty() || !normal_form_) return !normalized_.can_straddle(around);
  // These two bytes stay adjacent when the text is normalized.
  return is_ascii_word(around[0]) && static_cast<unsigned char>(around[1]) < 0x80 &&
         !normalized_.can_straddle(normal_form_(around, 0, false));
}

int32_t PieceTokenizer::find_in_model(std::string_view piece) const {
  const int32_t id = vocabulary_.find(piece);
  return id < model_size_ ? id : -1;
}

int64_t PieceTokenizer::unknown_id() const {
  const int64_t id = find(unknown());
  const std::vector<int64_t> ends = marks().ends;
  return std::find(ends.begin(), ends.end(), id) == ends.end() ? id : -1;
}

std::shared_ptr<const PieceTokenizer> PieceTokenizer::without_added() const {
  std::vector<bool> is_added(static_cast<size_t>(vocabulary_.size()));
  for (const AddedToken& token : added_) is_added[static_cast<size_t>(token.id)] = token.content != unknown();
  Vocabulary others;
  for (int64_t id = 0; id < vocabulary_.size(); ++id)
    if (vocabulary_.has(id) && !is_added[static_cast<size_t>(id)]) others.add(vocabulary_.piece(id), id);
  return with_vocabulary(std::move(others), {});
}

Marks PieceTokenizer::model_marks() const {
  Marks marks;
  for (const AddedToken& token : added_) {
    if (token.bos) marks.begin = token.id;
    if (token.eos) marks.ends.push_back(token.id);
  }
  return marks;
}

}  // namespace ricci
