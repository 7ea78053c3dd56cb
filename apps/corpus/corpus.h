// The text of a run: training and validation tokens, and their tokenizer.
#pragma once
#include <memory>

#include "apps/config/train_config.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokens/token_file.h"

namespace ricci::apps {

struct Corpus {
  std::shared_ptr<const Tokenizer> tokenizer;
  TokenFile train, validation;

  uint64_t hash() const;  // of all tokens, whatever files they came from
};

// Opens what the config names: files, folders, or the embedded corpus. A character vocabulary is that of the whole text
// when validation is cut from it, as nanoGPT's is, else that of the training text.
// Other vocabularies are made from the training text.
// A run that goes on passes the tokenizer it has.
// Errors: a text that is missing, empty or too short to split; text with characters outside the vocabulary.
Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr);

// The size of the tokenizer's vocabulary. Error: the config asks for another one.
int64_t vocab_of(const TrainConfig& config, const Tokenizer& tokenizer);

// What a trained run is evaluated on: the end of the config's data, or its validation files; or other files.
TextSource validation_text(const TrainConfig& config);
TextSource text_of(const std::vector<std::string>& paths);

// The tokens of another text for a model that is trained already.
TokenFile open_tokens(const std::vector<std::string>& paths, const Tokenizer& tokenizer);

// The tokens of validation_text.
TokenFile open_validation(const TrainConfig& config, const Tokenizer& tokenizer);

}  // namespace ricci::apps
