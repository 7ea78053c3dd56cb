// The table of tokenizers: every kind by its name, and how it is made from a text.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/text/text_source.h"
#include "data/tokenizers/eos_tokenizer.h"
#include "data/tokenizers/training/training.h"

namespace ricci {

struct TokenizerKind {
  const char* name;
  const char* summary;  // what a token is
  bool has_pieces;      // a vocabulary of written pieces, to which <eos> can be added
  bool needs_size;      // the size of its vocabulary must be given
  const char* options;  // those of ricci-tokenize train, without dashes, that its training reads
  std::shared_ptr<const Tokenizer> (*train)(const TextSource& text, const TrainingOptions& options);
};

std::span<const TokenizerKind> tokenizer_kinds();

// "char, byte, word, ..."
std::string list_of_tokenizers();
// Nothing where no kind has this name.
const TokenizerKind* find_tokenizer_kind(std::string_view name);

// Whether the training of a kind reads an option, such as "min-count"; and the names of the kinds that do: "word, bpe, wordpiece".
bool reads_option(const TokenizerKind& kind, std::string_view option);
std::string list_of_readers(std::string_view option);

struct EosOptions {
  Eos behind = Eos::none;
  std::string piece = "<eos>";
};

// A tokenizer of this kind with a vocabulary made from the text, which ends lines or documents with <eos> where asked to.
// Errors: those of training; a kind that needs a size and has none, or has no <eos>.
std::shared_ptr<const Tokenizer> train_tokenizer(
    const TokenizerKind& kind, const TextSource& text, TrainingOptions options, const EosOptions& eos);

}  // namespace ricci
