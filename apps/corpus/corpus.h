// The text of a run: training and validation tokens, and their tokenizer.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "apps/config/train_config.h"
#include "data/text/text_source.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokens/tokens.h"

namespace ricci::apps {

struct Corpus {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<Tokens> sources;  // for training: one, or as many as there are entries of data
  Tokens train, validation;     // train: the sources behind one another

  uint64_t hash() const;  // of all tokens, whatever files they came from
};

// Opens what the config names: files, folders, or the embedded corpus; JSONL or TSV; or else prepared shards, or shards of llm.c.
// Without weights all that is no shard is joined into one source. A character vocabulary is that of the whole text when validation is cut from it, as nanoGPT's
// is, else that of the training text; prepared shards bring their tokenizer.
// A run that goes on passes the tokenizer it has.
// Errors: a text that is missing, empty or too short to split; text with characters outside the vocabulary; shards beside texts,
// and those of ShardedTokens::open; a classifier without labels, or with more classes than the model has.
Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr);

// The size of the tokenizer's vocabulary. Error: the config asks for another one.
int64_t vocab_of(const TrainConfig& config, const Tokenizer& tokenizer);

// The tokens of another text, of the config's format, or of shards, for a model that is trained already.
Tokens open_tokens(const TrainConfig& config, const std::vector<std::string>& paths, const Tokenizer& tokenizer);

// The end of the config's data, or its validation files: what a trained run is evaluated on.
Tokens open_validation(const TrainConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer);

// The text behind those tokens: behind open_validation where no paths are given. Nothing: they are no plain text, or a mixture.
std::optional<TextSource> text_of(const TrainConfig& config, const std::vector<std::string>& paths);

}  // namespace ricci::apps
