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

// A text that is always there, carried inside the program: documentation and sources of this project as they once were (embedded.tar.gz).
// It never changes, because a run that learns it must be able to continue after an update.
std::string_view embedded_corpus();

struct Validation {
  Tokens tokens;
  std::optional<TextSource> text = {};  // if it is plain and one source
  int64_t from_byte = 0;                // the byte of the text that the tokens begin with
};

struct Corpus {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<Tokens> sources;  // for training: one, or one for each entry of data
  Tokens train;                 // the sources one after the other
  Validation validation;
  std::string note = {};                 // lines about the tokenizer, the cache, and documents that are left out
  std::vector<std::string> labels = {};  // the names of a classifier's classes, if they have any

  uint64_t hash() const;         // hashes all tokens, whatever files they came from
  uint64_t former_hash() const;  // the number that version 0.1.0 gave the same tokens; reads all of them
};

// Opens the data that the config names: texts, the embedded one among them, or documents, which become shards in the cache
// (data/shards/cache.h); prepared shards, or llm.c's. Each entry of shards is a source of its own. Texts and documents are joined
// into one source, unless `weights` mixes them.
//   tokenizer   if null, the one that the config asks for. Prepared shards bring theirs. A vocabulary is made from the training text;
//               one of characters from the validation text, too, if that was cut from the same files, as nanoGPT's is.
// Errors: no data; a text that is missing, empty or too short to split; text with characters outside the vocabulary; shards next to texts,
// and Tokens::open's; a classifier without labels, or with more classes than the model has; a format that needs tokens that do not count
// and shards without such, or the other way round.
Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr);

// The rows of a vocabulary for the tokenizer: its size, or more if the config asks for them and the tokenizer is a file. Error: the config
// asks for another size. A vocabulary that is made from the text may be smaller than that.
int64_t vocab_of(const TrainConfig& config, const Tokenizer& tokenizer);

// Fills in what the config leaves to the text: the size of the vocabulary, the token that ends a document, the names of the classes.
void resolve(TrainConfig& config, const Corpus& corpus);

// The tokens on which a trained run is scored. `paths` names shards, or texts in the format of the config. Without paths, the validation
// files of the config are read, or the end of its data.
Validation open_validation(const TrainConfig& config, const std::vector<std::string>& paths, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace ricci::apps
