// The table of tokenizers lists every kind with its name and training. A recipe says which tokenizer a user asks for, a kind or a file;
// read_tokenizer reads the file, make_tokenizer makes the kind from texts.
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
  bool needs_size;      // the size of its vocabulary must be given
  const char* options;  // the options of ricci tokenize train that this kind reads, without dashes
  // Null for char, which has the characters of all texts.
  std::shared_ptr<const Tokenizer> (*train)(const std::vector<Documents>& training_parts, const TrainingOptions& options);
};

// "char, byte, word, ...": all kinds, or the kinds that read this option.
std::string list_of_tokenizers(std::string_view option = "");
// Null if no kind has this name.
const TokenizerKind* find_tokenizer_kind(std::string_view name);

// True if the training of a kind reads an option, such as "min-count".
bool reads_option(const TokenizerKind& kind, std::string_view option);

struct OpenOptions {
  bool lowercase = false;  // for a vocab.txt of an uncased model: lower case without accents
};

// A tokenizer before it is read or made.
struct TokenizerRecipe {
  std::string name = "char";      // a kind or a file
  TrainingOptions training = {};  // for a kind
  Eos eos = Eos::none;            // the end of each line or document
  bool eos_is_default = false;    // a tokenizer that has no such token may do without
  std::string eos_piece = {};     // as in with_eos
  bool has_line_end = false;      // char: the line end is a character even if no text has it
  OpenOptions open = {};          // for a file

  const TokenizerKind* kind() const { return find_tokenizer_kind(name); }  // null for a file
  // For a kind: equal for recipes that make the same tokenizer from the same texts.
  std::string key() const;
};

// The tokenizer in the file of the recipe. Errors: open_tokenizer's, with_eos's.
std::shared_ptr<const Tokenizer> read_tokenizer(const TokenizerRecipe& recipe);

// Makes the tokenizer of a recipe from the training part of each source. Characters also come from the validation part, as in nanoGPT. With
// a train_fraction above 0 plain texts are cut: Documents::cut is filled in. Errors: the training's; this kind needs a size, or cannot have
// <eos>; a source is too short to be cut.
std::shared_ptr<const Tokenizer> make_tokenizer(const TokenizerRecipe& recipe, std::vector<Documents>& sources, double train_fraction = 0);

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
