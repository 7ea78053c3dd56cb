// The training and validation tokens of a run's config, and their tokenizer (data/shards/corpus.h).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/train_config.h"
#include "data/shards/corpus.h"

namespace ricci::apps {

// A text inside the program, `data: embedded`: documentation and sources of this project at one time (embedded.tar.gz). It never changes,
// so its runs can continue after an update.
std::string_view embedded_corpus();

// The data files of a config and its tokenizer: `known` if a run continues, else chosen. Errors: as for find_sources and
// choose_tokenizer.
CorpusRequest request_of(const TrainConfig& config, std::shared_ptr<const Tokenizer> known = nullptr);

// Errors: as for request_of and open_corpus; a classifier has no labels or too few classes; the format has answers and the tokens have
// none, or the reverse.
Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> known = nullptr);

// Notes: omitted documents, a vocabulary smaller than requested, documents without an end token.
std::string describe_corpus(const TrainConfig& config, const Corpus& corpus);

// The tokens that score a trained run: the config's validation files, else the end of its data.
Validation open_validation(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer, int64_t context);

// Error: the tokenizer's vocabulary does not fit model.vocab. A vocabulary made from the text can be smaller than requested, and
// model.vocab can exceed a tokenizer file's (model_config).
void check_vocab(const TrainConfig& config, const Tokenizer& tokenizer);

}  // namespace ricci::apps
