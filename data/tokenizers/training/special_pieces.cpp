#include "data/tokenizers/training/special_pieces.h"

#include <algorithm>

#include "core/error.h"
#include "data/tokenizers/json/read.h"
#include "data/tokenizers/vocabulary.h"

namespace ricci {

std::vector<std::string> special_pieces(const std::vector<std::string>& of_kind, const std::vector<std::string>& asked) {
  std::vector<std::string> pieces;
  for (const auto* list : {&of_kind, &asked})
    for (const std::string& piece : *list)
      if (std::find(pieces.begin(), pieces.end(), piece) == pieces.end()) pieces.push_back(piece);
  return pieces;
}

std::vector<AddedToken> as_added(const std::vector<std::string>& special) {
  std::vector<AddedToken> added;
  for (const std::string& piece : special) added.push_back({.id = static_cast<int64_t>(added.size()), .content = piece});
  return added;
}

std::shared_ptr<const Tokenizer> with_special(std::shared_ptr<const Tokenizer> tokenizer, const std::vector<std::string>& special) {
  for (const std::string& piece : special) {
    if (const int64_t id = tokenizer->find(piece); id >= 0)
      fail("special piece '{}': the vocabulary has it already, as {}", {one_line(piece), id});
    tokenizer = with_added_piece(*tokenizer, piece);
  }
  return tokenizer;
}

void check_size(const char* who, const TrainingOptions& options, size_t least) {
  if (options.vocab < static_cast<int64_t>(least))
    fail("{}: a vocabulary of {} pieces, but {} are needed before the first merge", {who, options.vocab, least});
  if (options.vocab > kMaxPieces) fail("{}: a vocabulary of {} pieces, at most {} are possible", {who, options.vocab, kMaxPieces});
}

}  // namespace ricci
