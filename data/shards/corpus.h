// From paths to tokens, in three steps. Texts become shards in the cache; shards can also be prepared already.
//   find_sources(paths)             texts or shards
//   choose_tokenizer(recipe, data)  the tokenizer of the shards, or of the recipe
//   open_corpus(request)            tokens for training and validation
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/feeds/evaluation.h"
#include "data/formats/documents.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/kinds.h"

namespace ricci {

// Texts or shards, never both. Each element is a source.
struct Sources {
  std::vector<Documents> texts = {};
  std::vector<std::string> shards = {};  // folders of shards, and files of llm.c
  bool empty() const { return texts.empty() && shards.empty(); }
};

struct CorpusRequest {
  Sources data = {}, validation = {};  // without validation the end of data validates
  double train_fraction = 0;           // the part of data that trains; by default all
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;
  std::vector<std::string> labels = {};  // names of the classes, if they have any
  int64_t context = 0;                   // documents with answers are kept if they have one in these first tokens
  std::function<void(const std::string& line)> warn = {};
  std::function<void(const Tokens& source)> check = {};  // throws if nobody can learn from these tokens
};

struct Validation {
  Tokens tokens = {};
  std::optional<Documents> text = {};  // if it is one plain text
  int64_t from_byte = 0;               // where the tokens begin in it
  MaskedCounts answers = {};           // if its documents have answers
};

struct Corpus {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<Tokens> sources = {};  // for training
  Tokens train = {};                 // all sources
  Validation validation = {};
  MaskedCounts answers = {};             // in training and validation
  std::vector<std::string> labels = {};  // CorpusRequest::labels

  uint64_t hash() const;  // covers all tokens, from whatever files they came
};

// Looks the paths up. Texts form one source; if they are mixed, each path is one. Errors: a path that is missing or empty; shards next to
// texts.
Sources find_sources(const std::vector<std::string>& paths, const DocumentOptions& documents, Encoding encoding,
    std::span<const BuiltInText> built_in, bool is_mixed);

// The class names of training data: the given ones, else the names in the first shards, else the words that label texts, sorted; empty if
// labels are numbers. Validation documents never define classes: their words could have a different order. Error: labels of more or fewer
// kinds than classes.
std::vector<std::string> find_labels(const Sources& data, const std::vector<std::string>& asked);

// The tokenizer that shards bring, or the one in the file of the recipe, or one made from the training part of the texts, which are then
// cut (Documents::cut). Errors: the file's and the training's; the shards have another tokenizer; the recipe asks for an end token in
// shards, or lacks the size that its kind needs.
std::shared_ptr<const Tokenizer> choose_tokenizer(const TokenizerRecipe& recipe, Sources& data, double train_fraction);

// Errors: a text that is too short to split, or has characters outside the vocabulary; shards of another tokenizer or with other class
// names; no answer inside the context.
Corpus open_corpus(const CorpusRequest& request);

// The tokens that score a model: of the validation, else of the end of the data.
Validation open_validation(const CorpusRequest& request);

}  // namespace ricci
