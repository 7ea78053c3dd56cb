#include "data/tokenizers/piece_tokenizer.h"

#include <algorithm>

#include "core/error.h"

namespace ricci {
namespace {

// The tokens to look for in the normal form, or in the text as it is. Without a normal form, all are looked for in the text.
template <class NormalForm>
std::vector<AddedToken> tokens_in(const std::vector<AddedToken>& tokens, const NormalForm& normal_form, bool is_normal) {
  std::vector<AddedToken> chosen;
  for (AddedToken token : tokens) {
    if ((token.normalized && normal_form) != is_normal) continue;
    if (is_normal) token.content = normal_form(token.content, 0);
    if (!token.content.empty() || !is_normal) chosen.push_back(token);
  }
  return chosen;
}

bool is_ascii_word(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }

}  // namespace

PieceTokenizer::PieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, NormalForm normal_form)
    : vocabulary_(std::move(vocabulary)),
      added_(std::move(added)),
      normal_form_(std::move(normal_form)),
      raw_(tokens_in(added_, normal_form_, false)),
      normalized_(tokens_in(added_, normal_form_, true)) {
  const int64_t most = vocabulary_.size() + static_cast<int64_t>(added_.size()) + kSpareIds;
  for (const AddedToken& token : added_) {
    const int32_t known = vocabulary_.find(token.content);
    if (known >= 0 && known != token.id)
      fail("added tokens: '{}' has the id {}, but {} in the vocabulary", {one_line(token.content), token.id, known});
    if (token.id < 0 || token.id >= most)
      fail("added tokens: the id {} of '{}' is not in 0 ... {}", {token.id, one_line(token.content), most - 1});
    if (known < 0) vocabulary_.add(token.content, token.id);
  }
  if (vocabulary_.size() == 0) fail("tokenizer: the vocabulary is empty");
  added_of_id_.resize(static_cast<size_t>(vocabulary_.size()), nullptr);
  for (const AddedToken& token : added_) added_of_id_[static_cast<size_t>(token.id)] = &token;
  // The place of such a token is known in the normal form alone, and there is no cut inside letters and digits.
  for (const AddedToken& token : added_)
    if (normal_form_ && token.normalized) divisible_ = divisible_ && std::all_of(token.content.begin(), token.content.end(), is_ascii_word);
}

void PieceTokenizer::append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const {
  AddedTokens::Match match{};
  for (size_t from = 0; match.id >= 0; from = match.end) {
    match = raw_.find(piece, from, match.next);
    if (match.begin > from) append_between(piece.substr(from, match.begin - from), offset + static_cast<int64_t>(from), ids);
    if (match.id >= 0) ids.push_back(match.id);
  }
}

void PieceTokenizer::append_plain_text(std::string_view text, std::vector<int64_t>& ids) const {
  if (!text.empty()) append_plain(normal_form_ ? normal_form_(text, 0) : std::string(text), 0, ids);
}

// The text between two tokens that are found in the text as it is.
void PieceTokenizer::append_between(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const {
  const std::string normal_form = normal_form_ ? normal_form_(text, offset) : "";
  const std::string_view normal = normal_form_ ? std::string_view(normal_form) : text;
  AddedTokens::Match match{};
  for (size_t from = 0; match.id >= 0; from = match.end) {
    match = normalized_.find(normal, from, match.next);
    if (match.begin > from) append_plain(normal.substr(from, match.begin - from), offset + static_cast<int64_t>(from), ids);
    if (match.id >= 0) ids.push_back(match.id);
  }
}

size_t PieceTokenizer::complete_prefix(std::string_view text) const {
  if (!divisible_ || text.empty()) return 0;
  const auto whole = [&](size_t position) { return !raw_.may_straddle(text, position) && !normalized_.may_straddle(text, position); };
  for (size_t position = text.size(); position-- > 1;)
    if (may_cut(text, position) && whole(position)) return position;
  const auto [start, end] = last_plain(text);
  const size_t split = start + (normalized_.empty() ? complete_prefix_by_splitting(text.substr(start, end - start)) : 0);
  if (whole(split)) return split;
  return whole(start) ? start : 0;
}

// A token that takes the white space after it may take more of it than is known yet: the text ends before such a one.
PieceTokenizer::Range PieceTokenizer::last_plain(std::string_view text) const {
  constexpr size_t longest_character = 4;
  size_t start = 0;
  for (AddedTokens::Match match = raw_.find(text, 0, 0); match.id >= 0; match = raw_.find(text, start, match.next)) {
    const bool may_take_more = added_of_id_[static_cast<size_t>(match.id)]->rstrip && match.end + longest_character > text.size();
    if (may_take_more) return {start, match.begin};
    start = match.end;
  }
  return {start, text.size()};
}

Marks PieceTokenizer::marks() const {
  Marks marks;
  for (const AddedToken& token : added_) {
    if (token.bos) marks.begin = token.id;
    if (token.eos) marks.ends.push_back(token.id);
  }
  return marks;
}

bool PieceTokenizer::append_added(int64_t id, std::string& text) const {
  const AddedToken* const token = added_of_id_[static_cast<size_t>(id)];
  if (token) text += token->content;
  return token != nullptr;
}

}  // namespace ricci
