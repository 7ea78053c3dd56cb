// The table of tokenizers lists every kind with its name and training. A recipe names a kind or a file: make_tokenizer trains the kind on
// texts, read_tokenizer reads the file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/formats/documents.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/training/training.h"

namespace ricci {

struct TokenizerKind {
  const char* name;
  bool takes_eos;       // <eos> can be added to its vocabulary
  bool needs_size;      // its vocabulary size must be given
  const char* options;  // the options of ricci tokenize train that apply to this kind, without dashes
  // Trains a tokenizer. Null for char: its vocabulary consists of the characters of all texts.
  std::shared_ptr<const Tokenizer> (*train)(const std::vector<Documents>& training_parts, const TrainingOptions& options);
};

// Lists all kinds, or the kinds that use this option, as "char, byte, word, ...".
std::string list_of_tokenizers(std::string_view option = "");
// Null if no kind has this name.
const TokenizerKind* find_tokenizer_kind(std::string_view name);

// True if the training of a kind uses an option, such as "min-count".
bool reads_option(const TokenizerKind& kind, std::string_view option);

struct OpenOptions {
  bool lowercase = false;  // for an uncased model's vocab.txt: lower case without accents
};

// A tokenizer before it is read or made.
struct TokenizerRecipe {
  std::string name = "char";      // a kind or a file
  TrainingOptions training = {};  // for a kind
  Eos eos = Eos::none;            // none, or an end token after each line or document
  bool eos_is_default = false;    // a tokenizer without an end token is accepted
  std::string eos_piece = {};     // as in with_eos
  bool has_line_end = false;      // char: the vocabulary always contains the line end
  OpenOptions open = {};          // for a file

  const TokenizerKind* kind() const { return find_tokenizer_kind(name); }  // null for a file
  // For a kind: equal for recipes that make the same tokenizer from the same texts.
  std::string key() const;
};

// The tokenizer in the recipe's file. Errors: open_tokenizer's, with_eos's.
std::shared_ptr<const Tokenizer> read_tokenizer(const TokenizerRecipe& recipe);

// Makes a recipe's tokenizer from the training part of each source. Characters also come from the validation part, as in nanoGPT. A
// train_fraction above 0 cuts plain texts by setting Documents::cut. Errors: the training's; this kind needs a size, or cannot have <eos>;
// a source is too short to cut.
std::shared_ptr<const Tokenizer> make_tokenizer(const TokenizerRecipe& recipe, std::vector<Documents>& sources, double train_fraction = 0);

// The tokenizer that `path` names:
//   tokenizer.json, or any .json that describes a complete tokenizer
//   vocab.bpe or *merges.txt, with encoder.json or *vocab.json in the same folder, or that JSON: only GPT-2's
//   *vocab.txt (WordPiece, one token per line); a tokenizer_config.json in the same folder can ask for lower case
//   a folder with one of these
// Errors name the file: the file or its partner is missing; the format is wrong; merges are not GPT-2's.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, const OpenOptions& options = {});

// The tokenizer file in a folder, or empty.
std::string find_tokenizer_file(const std::string& folder);

// True for a path, false for a tokenizer kind.
bool names_tokenizer_file(const std::string& text);

}  // namespace ricci
