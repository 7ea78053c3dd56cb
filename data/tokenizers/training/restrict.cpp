#include "core/error.h"
#include "data/text/text.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/eos_tokenizer.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/training/training.h"
#include "data/tokenizers/words/word_tokenizer.h"
#include "data/tokenizers/words/wordpiece_tokenizer.h"

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

Vocabulary kept_pieces(const PieceTokenizer& tokenizer, const std::vector<bool>& kept) {
  std::vector<std::string> pieces;
  for (int64_t id = 0; id < tokenizer.model_size(); ++id)
    if (kept[static_cast<size_t>(id)]) pieces.emplace_back(tokenizer.vocabulary().piece(id));
  return Vocabulary(pieces);
}

std::vector<AddedToken> renumbered(const PieceTokenizer& tokenizer, const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens = tokenizer.added_tokens();
  int64_t next = vocabulary.size();  // for tokens that the model does not know
  for (AddedToken& token : tokens) token.id = token.id < tokenizer.model_size() ? vocabulary.find(token.content) : next++;
  return tokens;
}

std::shared_ptr<const Tokenizer> restrict_bpe(const BpeTokenizer& tokenizer, std::vector<bool> kept) {
  const Vocabulary& all = tokenizer.vocabulary();
  for (int byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    keep(all, bytes_to_letters({&letter, 1}), kept);
  }
  keep(all, tokenizer.options().unknown, kept);
  keep(all, tokenizer.options().first, kept);
  // The parts of a piece that remains remain, too. The pieces of a merge mostly come from merges before it.
  const std::span<const Merges::Merge> merges = tokenizer.merges().all();
  for (bool found = true; found;) {
    found = false;
    for (size_t i = merges.size(); i-- > 0;)
      for (const uint32_t part : {merges[i].left, merges[i].right})
        if (kept[merges[i].merged] && !kept[part]) kept[part] = found = true;
  }
  Vocabulary vocabulary = kept_pieces(tokenizer, kept);
  const std::vector<BpeTokenizer::Pair> pairs = tokenizer.merges_in(vocabulary);
  std::vector<AddedToken> added = renumbered(tokenizer, vocabulary);
  BpeOptions options = tokenizer.options();
  options.post_processor.clear();  // it holds ids; one for options.first is written anew
  return std::make_shared<BpeTokenizer>(std::move(vocabulary), pairs, std::move(added), options);
}

std::shared_ptr<const Tokenizer> restrict_wordpiece(const WordPieceTokenizer& tokenizer, std::vector<bool> kept) {
  keep(tokenizer.vocabulary(), tokenizer.options().unknown, kept);
  Vocabulary vocabulary = kept_pieces(tokenizer, kept);
  std::vector<AddedToken> added = renumbered(tokenizer, vocabulary);
  WordPieceOptions options = tokenizer.options();
  options.post_processor.clear();  // it holds ids
  return std::make_shared<WordPieceTokenizer>(std::move(vocabulary), std::move(added), options);
}

std::shared_ptr<const Tokenizer> restrict_words(const WordTokenizer& tokenizer, std::vector<bool> kept) {
  keep(tokenizer.vocabulary(), tokenizer.unknown(), kept);
  Vocabulary vocabulary = kept_pieces(tokenizer, kept);
  std::vector<AddedToken> added = renumbered(tokenizer, vocabulary);
  return std::make_shared<WordTokenizer>(std::move(vocabulary), std::move(added), tokenizer.unknown());
}

std::shared_ptr<const Tokenizer> restricted(const Tokenizer& tokenizer, std::vector<bool> kept) {
  if (const auto* const eos = dynamic_cast<const EosTokenizer*>(&tokenizer)) {
    kept[static_cast<size_t>(eos->find(eos->piece()))] = true;
    return std::make_shared<EosTokenizer>(restricted(eos->without_eos(), std::move(kept)), eos->after(), eos->piece());
  }
  const auto* const pieces = dynamic_cast<const PieceTokenizer*>(&tokenizer);
  if (!pieces)
    fail("restrict: the {} tokenizer has no pieces that could be left out, only bpe, wordpiece and word have", {tokenizer.name()});
  for (const AddedToken& token : pieces->added_tokens()) kept[static_cast<size_t>(token.id)] = true;
  if (const auto* const bpe = dynamic_cast<const BpeTokenizer*>(pieces)) return restrict_bpe(*bpe, std::move(kept));
  if (const auto* const wordpiece = dynamic_cast<const WordPieceTokenizer*>(pieces)) return restrict_wordpiece(*wordpiece, std::move(kept));
  return restrict_words(dynamic_cast<const WordTokenizer&>(*pieces), std::move(kept));
}

}  // namespace

std::shared_ptr<const Tokenizer> restrict_to(const Texts& texts, const Tokenizer& tokenizer) {
  return restricted(tokenizer, pieces_of_text(texts, tokenizer));
}

}  // namespace ricci
