// The table of tokenizers: every kind by its name, and how it is made from texts; and tokenizers from the files that they are published
// in.
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
  const char* options;  // the options of ricci-tokenize train that its training reads, without dashes
  std::shared_ptr<const Tokenizer> (*train)(const Documents& documents, const TrainingOptions& options);
};

std::span<const TokenizerKind> tokenizer_kinds();

// "char, byte, word, ...": all kinds, or the kinds whose training reads an option.
std::string list_of_tokenizers(std::string_view option = "");
// Nothing where no kind has this name.
const TokenizerKind* find_tokenizer_kind(std::string_view name);

// Version 0.1.0 trained this kind, too: its runs still name it, and continue with their tokenizer.json.
inline constexpr const char* kFormerKind = "wordpiece";

// True if the training of a kind reads an option, such as "min-count".
bool reads_option(const TokenizerKind& kind, std::string_view option);

struct EosOptions {
  Eos after = Eos::none;
  std::string piece = "";  // as of with_eos
};

// A tokenizer of this kind with a vocabulary made from the texts, which ends lines or documents with <eos> where asked to.
// Errors: the training's; a kind that needs a size and has none, or has no <eos>.
std::shared_ptr<const Tokenizer> train_tokenizer(
    const TokenizerKind& kind, const Documents& documents, TrainingOptions options, const EosOptions& eos);

struct OpenOptions {
  bool lowercase = false;  // for a vocab.txt: text is put into lower case and loses its accents, as BERT's uncased models want it
};

// The tokenizer that `path` names:
//   tokenizer.json, or any .json that describes a whole tokenizer
//   vocab.bpe or *merges.txt, with its encoder.json or *vocab.json next to it; or that JSON, with the merges next to it: GPT-2's only
//   *vocab.txt (WordPiece, one piece per line); tokenizer_config.json next to a vocab.txt names lower case
//   a folder with one of these
// Errors: no such file, a file next to it is missing or makes it another tokenizer than GPT-2's, and the format's; each names the file.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, const OpenOptions& options = {});

// The file in a folder that names its tokenizer; empty if there is none.
std::string tokenizer_file_in(const std::string& folder);

// True where the text is a path that open_tokenizer could read and not the name of a kind of tokenizer.
bool names_tokenizer_file(const std::string& text);

}  // namespace ricci
