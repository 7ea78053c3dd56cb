// The table of tokenizers lists every kind with its name and training. Tokenizers are also read from files here, because programs take
// either a kind or a path.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/formats/documents.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/training/training.h"

namespace ricci {

struct TokenizerKind {
  const char* name;
  bool takes_eos;       // <eos> can be added to its vocabulary
  bool needs_size;      // the size of its vocabulary must be given
  const char* options;  // the options of ricci-tokenize train that this kind reads, without dashes
  std::shared_ptr<const Tokenizer> (*train)(const Documents& documents, const TrainingOptions& options);
};

std::span<const TokenizerKind> tokenizer_kinds();

// "char, byte, word, ...": all kinds, or the kinds that read this option.
std::string list_of_tokenizers(std::string_view option = "");
// Null if no kind has this name.
const TokenizerKind* find_tokenizer_kind(std::string_view name);

// Version 0.1.0 could also train this kind. Its runs still name it, and continue with their tokenizer.json.
inline constexpr const char* kFormerKind = "wordpiece";

// True if the training of a kind reads an option, such as "min-count".
bool reads_option(const TokenizerKind& kind, std::string_view option);

struct EosOptions {
  Eos after = Eos::none;
  std::string piece = "";  // as in with_eos
};

// Trains a tokenizer of this kind on the documents. Errors: the training's; this kind needs a size, or cannot have <eos>.
std::shared_ptr<const Tokenizer> train_tokenizer(
    const TokenizerKind& kind, const Documents& documents, TrainingOptions options, const EosOptions& eos);

struct OpenOptions {
  bool lowercase = false;  // for a vocab.txt of an uncased model: lower case without accents
};

// The tokenizer that `path` names:
//   tokenizer.json, or any .json that describes a whole tokenizer
//   vocab.bpe or *merges.txt, with encoder.json or *vocab.json next to it, or that JSON: only GPT-2's
//   *vocab.txt (WordPiece, one piece per line); tokenizer_config.json next to a vocab.txt can ask for lower case
//   a folder with one of these
// Errors name the file: it or a file next to it is missing; it is not in the expected format; merges are not GPT-2's.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, const OpenOptions& options = {});

// The file of the tokenizer in a folder, or empty.
std::string find_tokenizer_file(const std::string& folder);

// True if the text is a path and not the name of a kind of tokenizer.
bool names_tokenizer_file(const std::string& text);

}  // namespace ricci
