// The text of a run: training and validation tokens, and their tokenizer.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/train_config.h"
#include "data/shards/tokens.h"
#include "data/text/text.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {

// A text inside the program, `data: embedded`: documentation and sources of this project at one time (embedded.tar.gz). It never changes,
// because a run that learns it must be able to continue after an update.
std::string_view embedded_corpus();

struct Validation {
  Tokens tokens;
  std::optional<TextSource> text = {};  // if it is one plain text
  int64_t from_byte = 0;                // where the tokens begin in it
};

struct Corpus {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<Tokens> sources;  // for training: one, or one for each entry of data
  Tokens train;                 // all sources
  Validation validation;
  std::string note = {};                 // lines about the tokenizer and about omitted documents
  std::vector<std::string> labels = {};  // for a classifier's classes, if they have names

  uint64_t hash() const;         // for all tokens, whatever files they came from
  uint64_t former_hash() const;  // the hash of version 0.1.0; reads all tokens
};

// Opens the data of the config: texts or documents (they become shards in the cache, data/shards/cache.h), or prepared shards, or llm.c's.
// Texts and documents form one source, unless `weights` mixes them; each entry of shards is a separate source.
//   tokenizer   if null, the one that the config asks for. Prepared shards bring theirs. A vocabulary is made from the training text. One
//   of
//               characters is also made from a validation text that was cut from the same files, as nanoGPT's is.
// Errors: no data; a text that is missing, empty or too short to split; text with characters outside the vocabulary; shards next to texts;
// a classifier without labels, or with more classes than the model has; a format with answers for shards without them, or the other way
// round.
Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr);

// Error: the config asks for a vocabulary that the tokenizer cannot have. A vocabulary that is made from the text can be smaller than asked
// for, and one from a file larger (model_config).
void check_vocab(const TrainConfig& config, const Tokenizer& tokenizer);

// The tokens that score a trained run: of `paths` (shards, or texts in the format of the config), else of the config's validation
// files, else of the end of its data.
Validation open_validation(const TrainConfig& config, const std::vector<std::string>& paths, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace ricci::apps
