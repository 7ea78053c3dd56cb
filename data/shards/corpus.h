// Turns paths into tokens, in three steps. The cache turns texts into shards; shards can also exist already.
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
  std::vector<std::string> shards = {};  // folders of shards, and llm.c files
  bool empty() const { return texts.empty() && shards.empty(); }
};

struct CorpusRequest {
  Sources data = {}, validation = {};  // without validation sources, the end of `data` is used
  double train_fraction = 0;           // the part of `data` for training; 0 means all
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;
  std::vector<std::string> labels = {};  // class names, if any
  int64_t context = 0;                   // documents with answers are kept only if an answer begins in the first `context` tokens
  std::function<void(const std::string& line)> warn = {};
  std::function<void(const Tokens& source)> check = {};  // throws if these tokens cannot train a model
};

struct Validation {
  Tokens tokens = {};
  std::optional<Documents> text = {};  // set if the source is one plain text
  int64_t from_byte = 0;               // where these tokens start in the text
  MaskedCounts answers = {};           // set if the documents have answers
};

struct Corpus {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<Tokens> sources = {};  // for training
  Tokens train = {};                 // all sources joined
  Validation validation = {};
  MaskedCounts answers = {};             // in training and validation
  std::vector<std::string> labels = {};  // CorpusRequest::labels

  uint64_t hash() const;  // depends on all tokens, not on their files
};

// Resolves the paths. All texts form one source or, if is_mixed, each path is a source. Errors: a path is missing or empty; the paths name
// both shards and texts.
Sources find_sources(const std::vector<std::string>& paths, const DocumentOptions& documents, Encoding encoding,
    std::span<const BuiltInText> built_in, bool is_mixed);

// The class names: the given ones, else those in the first shards, else the sorted words that label the training texts; empty if labels are
// numbers. Validation documents never define classes. Error: the number of distinct labels differs from the number of classes.
std::vector<std::string> find_labels(const Sources& data, const std::vector<std::string>& asked);

// Returns the tokenizer in the shards or in the recipe's file, or makes one from the training part of the texts after cutting them
// (Documents::cut). Errors: reading the file or training fails; the shards have a different tokenizer; the recipe asks for an end token in
// shards, or lacks the vocabulary size that its kind needs.
std::shared_ptr<const Tokenizer> choose_tokenizer(const TokenizerRecipe& recipe, Sources& data, double train_fraction);

// Errors: a text is too short to split, or has characters outside the vocabulary; shards have a different tokenizer or class names; no
// answer begins inside the context.
Corpus open_corpus(const CorpusRequest& request);

// The tokens for evaluation: the validation data, else the end of the data.
Validation open_validation(const CorpusRequest& request);

}  // namespace ricci
