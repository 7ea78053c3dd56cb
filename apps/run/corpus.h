// The text of a run as its config asks for it: training and validation tokens, and their tokenizer (data/shards/corpus.h).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/train_config.h"
#include "data/shards/corpus.h"

namespace ricci::apps {

// A text inside the program, `data: embedded`: documentation and sources of this project at one time (embedded.tar.gz). It never changes:
// a run that learns it can continue after an update.
std::string_view embedded_corpus();

// The data of a config, looked up, and its tokenizer: `known`, as of a run that continues, else chosen. Errors: find_sources and
// choose_tokenizer.
CorpusRequest request_of(const TrainConfig& config, std::shared_ptr<const Tokenizer> known = nullptr);

// Errors: request_of's and open_corpus's; the family or the format cannot learn from these tokens: a classifier without labels, or with
// more classes than the model has; a format with answers for tokens without them, or the other way round.
Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> known = nullptr);

// Lines about documents that were left out, about a vocabulary that is smaller than asked for, and about documents without an end token.
std::string describe_corpus(const TrainConfig& config, const Corpus& corpus);

// The tokens that score a trained run: of the config's validation files, else of the end of its data.
Validation open_validation(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer, int64_t context);

// Error: the config asks for a vocabulary that the tokenizer cannot have. A vocabulary that is made from the text can be smaller than asked
// for, and one from a file larger (model_config).
void check_vocab(const TrainConfig& config, const Tokenizer& tokenizer);

}  // namespace ricci::apps
