#include "core/error.h"
#include "data/text/text.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/training/training.h"

namespace ricci {
namespace {

// By id: whether the piece is in the texts.
std::vector<bool> pieces_of_text(const Texts& texts, const Tokenizer& tokenizer) {
  std::vector<bool> seen(static_cast<size_t>(tokenizer.vocab_size()));
  texts.for_each_piece([&](std::string_view piece) { return tokenizer.complete_prefix(piece); },
      [&](std::string_view piece, int64_t offset, const std::string& place) {
        const Passage passage{piece, offset, false, place};
        for (const EncodedPart& part : encode(tokenizer, {&passage, 1}))
          for (const int64_t id : part.ids) seen[static_cast<size_t>(id)] = true;
      });
  return seen;
}

void keep(const Vocabulary& vocabulary, std::string_view piece, std::vector<bool>& kept) {
  if (const int32_t id = vocabulary.find(piece); id >= 0) kept[static_cast<size_t>(id)] = true;
}

// The pieces of bytes, and the parts of each piece that remains. The pieces of a merge mostly come from merges before it.
void keep_parts(const BpeTokenizer& tokenizer, std::vector<bool>& kept) {
  for (int byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    keep(tokenizer.vocabulary(), bytes_to_letters({&letter, 1}), kept);
  }
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

std::shared_ptr<const Tokenizer> restrict_to(const Texts& texts, const Tokenizer& tokenizer) {
  const auto* const old = dynamic_cast<const PieceTokenizer*>(&tokenizer);
  if (!old) fail("restrict: the {} tokenizer has no pieces that could be left out, only bpe, wordpiece and word have", {tokenizer.name()});
  std::vector<bool> kept = pieces_of_text(texts, tokenizer);
  std::vector<AddedToken> added = old->added_tokens();
  for (const AddedToken& token : added) kept[static_cast<size_t>(token.id)] = true;
  keep(old->vocabulary(), old->unknown(), kept);
  keep(old->vocabulary(), old->eos_piece(), kept);
  if (const auto* const bpe = dynamic_cast<const BpeTokenizer*>(old)) keep_parts(*bpe, kept);
  std::vector<std::string> pieces;
  for (int64_t id = 0; id < old->model_size(); ++id)
    if (kept[static_cast<size_t>(id)]) pieces.emplace_back(old->vocabulary().piece(id));
  Vocabulary vocabulary(pieces);
  int64_t next = vocabulary.size();  // for tokens that the model does not know
  for (AddedToken& token : added) token.id = token.id < old->model_size() ? vocabulary.find(token.content) : next++;
  const auto restricted = old->with_vocabulary(std::move(vocabulary), std::move(added));
  if (old->eos() != Eos::none) restricted->set_eos(old->eos(), old->eos_piece());
  return restricted;
}

}  // namespace ricci
