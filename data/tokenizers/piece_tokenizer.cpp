#include "data/tokenizers/piece_tokenizer.h"

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {
namespace {

// The tokens to look for in the normal form, or in the text as it is.
template <class NormalForm>
std::vector<AddedToken> tokens_in(const std::vector<AddedToken>& tokens, const NormalForm& normal_form, bool normalized) {
  std::vector<AddedToken> chosen;
  for (AddedToken token : tokens) {
    if (token.normalized != normalized) continue;
    if (normalized && normal_form) token.content = normal_form(token.content, 0);
    if (!token.content.empty()) chosen.push_back(token);
  }
  return chosen;
}

bool is_ascii_word(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }

}  // namespace

PieceTokenizer::PieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, NormalForm normal_form)
    : vocabulary_(std::move(vocabulary)),
      model_size_(vocabulary_.size()),
      added_(std::move(added)),
      normal_form_(std::move(normal_form)),
      raw_(tokens_in(added_, normal_form_, false)),
      normalized_(tokens_in(added_, normal_form_, true)) {
  const int64_t most = vocabulary_.size() + static_cast<int64_t>(added_.size()) + kSpareIds;
  bool follow = vocabulary_.count() == vocabulary_.size();
  for (const AddedToken& token : added_) {
    if (token.content.empty()) fail("added tokens: the one with id {} is empty", {token.id});
    const int32_t known = vocabulary_.find(token.content);
    if (known >= 0 && known != token.id)
      fail("added tokens: '{}' has the id {}, but {} in the vocabulary", {one_line(token.content), token.id, known});
    if (token.id < 0 || token.id >= most)
      fail("added tokens: the id {} of '{}' is not in 0 ... {}", {token.id, one_line(token.content), most - 1});
    if (known >= 0) continue;
    follow = follow && token.id == vocabulary_.size();
    vocabulary_.add(token.content, token.id);
  }
  // Hugging Face's tokenizers number the tokens that the model does not know. Where they would give other ids than these, the tokens are
  // written into the vocabulary of the model.
  if (!follow) model_size_ = vocabulary_.size();
  if (vocabulary_.size() == 0) fail("tokenizer: the vocabulary is empty");
}

void PieceTokenizer::append_model_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const {
  raw_.split(piece, [&](size_t begin, size_t end, int64_t id) {
    if (id >= 0) ids.push_back(id);
    else append_between(piece.substr(begin, end - begin), offset + static_cast<int64_t>(begin), ids);
  });
}

// The text between two tokens that are found in the text as it is.
void PieceTokenizer::append_between(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const {
  const std::string normal_form = normal_form_ ? normal_form_(text, offset) : "";
  const std::string_view normal = normal_form_ ? std::string_view(normal_form) : text;
  normalized_.split(normal, [&](size_t begin, size_t end, int64_t id) {
    if (id >= 0) ids.push_back(id);
    else append_plain(normal.substr(begin, end - begin), offset + static_cast<int64_t>(begin), ids);
  });
}

size_t PieceTokenizer::model_prefix(std::string_view text) const {
  for (size_t position = text.size(); position-- > 1;)
    if (may_cut(text, position) && may_part(text, position)) return position;
  return 0;
}

// True if the added tokens before byte `position` do not depend on the text after it, nor the other way round.
bool PieceTokenizer::may_part(std::string_view text, size_t position) const {
  const Utf8Character before = decode_utf8_before(text, position);
  if (before.bytes > 0 && (unicode_classes()[before.code] & unicode::space)) return false;  // a token may take it
  const std::string_view around = text.substr(position - 1, 2);
  if (raw_.may_straddle(around)) return false;
  if (normalized_.empty() || !normal_form_) return !normalized_.may_straddle(around);
  // These two bytes are next to each other in the normal form, too.
  return is_ascii_word(around[0]) && static_cast<unsigned char>(around[1]) < 0x80 && !normalized_.may_straddle(normal_form_(around, 0));
}

int32_t PieceTokenizer::find_in_model(std::string_view piece) const {
  const int32_t id = vocabulary_.find(piece);
  return id < model_size_ ? id : -1;
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
