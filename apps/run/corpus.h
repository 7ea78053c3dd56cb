// The training and validation tokens of a run's config, and their tokenizer (data/shards/corpus.h).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/train_config.h"
#include "data/shards/corpus.h"

namespace ricci::apps {

// The text that is built into the program, for `data: embedded`: documentation and sources of this project at one point in time
// (embedded.tar.gz). It never changes, so runs on it can continue after an update.
std::string_view embedded_corpus();

// The data files of a config and its tokenizer: `known` if a run continues, else the config's choice. Errors: as for find_sources and
// choose_tokenizer.
CorpusRequest request_of(const TrainConfig& config, std::shared_ptr<const Tokenizer> known = nullptr);

// Opens the training and validation tokens. Errors: as for request_of and open_corpus; a classifier's data has no labels, or more classes
// than model.classes; the format has answers and the tokens have none, or the reverse.
Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> known = nullptr);

// Returns notes about omitted documents, a vocabulary smaller than requested, and documents without an end token.
std::string describe_corpus(const TrainConfig& config, const Corpus& corpus);

// The tokens for the evaluation of a trained run: the config's validation files, else the last part of its data.
Validation open_validation(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer, int64_t context);

// Throws Error if the tokenizer's vocabulary does not fit model.vocab. A vocabulary made from the text can be smaller than requested, and
// model.vocab can exceed the vocabulary of a tokenizer file (model_config).
void check_vocab(const TrainConfig& config, const Tokenizer& tokenizer);

}  // namespace ricci::apps
