// The text of a run: training and validation tokens, and their tokenizer.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/train_config.h"
#include "data/shards/store.h"
#include "data/shards/tokens.h"
#include "data/text/text.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {

// A text that is always there, carried inside the program: documentation and sources of this project as they once were (embedded.tar.gz).
// It never changes, so that a run that learns it can go on after an update.
std::string_view embedded_corpus();

struct Corpus {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<Tokens> sources;           // for training: one, or one for each entry of data
  Tokens train, validation;              // train: the sources one after the other
  std::string note = {};                 // lines about the tokenizer and about conversations that are left out
  std::vector<std::string> labels = {};  // the names of a classifier's classes, if they have any

  uint64_t hash() const;  // hashes all tokens, whatever files they came from
};

// Opens the data that the config names: texts, the embedded one among them, JSONL or TSV, which become shards in the cache
// (data/shards/store.h); prepared shards, or llm.c's. Each entry of shards is a source of its own. Texts and documents are
// sources of their own where `weights` mixes them, else joined into one.
//   tokenizer   if null, the one that the config asks for. Prepared shards bring theirs. A vocabulary is made from the training text;
//               one of characters from the validation text, too, where that was cut from the same files, as nanoGPT's is.
// Errors: no data; a text that is missing, empty or too short to split; text with characters outside the vocabulary; shards beside texts,
// and ShardedTokens::open's; a classifier without labels, or with more classes than the model has.
Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr);

// The rows of a vocabulary for the tokenizer: its size, or more if the config asks for them and the tokenizer is a file. Error: the config
// asks for another size. A vocabulary that is made from the text may be smaller than that.
int64_t vocab_of(const TrainConfig& config, const Tokenizer& tokenizer);

// Fills in what the config leaves to the text: the size of the vocabulary, the token that ends a document, the names of the classes.
void resolve(TrainConfig& config, const Corpus& corpus);

// The tokens of another text, of the config's format, or of shards, for a model that is trained already.
Tokens open_tokens(const TrainConfig& config, const std::vector<std::string>& paths, const std::shared_ptr<const Tokenizer>& tokenizer);

// The end of the config's data, or its validation files: what a trained run is evaluated on.
Tokens open_validation(const TrainConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer);

// The text of these tokens, or of open_validation where no paths are given. Returns nullopt if they are no plain text, or a mixture.
std::optional<TextSource> text_of(
    const TrainConfig& config, const std::vector<std::string>& paths, const std::shared_ptr<const Tokenizer>& tokenizer);

// ---- The files of a config as sources of tokens (source.cpp)
std::string found_or_given(const std::string& path);
// True where these are shards. Error: some are and some are not.
bool are_shards(const std::vector<std::string>& paths);

// `embedded` is the built-in corpus.
TextSource open_text(const std::vector<std::string>& paths);

// The files as the config reads them: a text, or documents. is_cut: the end of it is validation.
StoreSource source_of(const TrainConfig& config, const std::vector<std::string>& paths, bool is_cut);

// The names of a classifier's classes: as given, or the words that are labels in the data.
std::vector<std::string> labels_of(const TrainConfig& config);

}  // namespace ricci::apps
