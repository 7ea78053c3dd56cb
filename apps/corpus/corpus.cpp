#include "apps/corpus/corpus.h"

#include "apps/corpus/embedded_corpus.h"
#include "core/error.h"
#include "core/files/hash.h"
#include "data/text/split.h"
#include "data/text/text_cache.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/open.h"

namespace ricci::apps {
namespace {

TextSource open_text(const std::vector<std::string>& paths) {
  const BuiltInText built_in[] = {{"embedded", embedded_corpus()}};
  const bool list = paths.size() != 1 || paths[0] == built_in[0].name;  // one path may be several, with commas between them
  return list ? TextSource::of_paths(paths, built_in) : TextSource(paths[0]);
}

Split open_split(const TrainConfig& config, const TextSource& text) {
  if (config.validation.empty()) return split_by_characters(text, config.train_fraction, default_cache_folder());
  return {text, open_text(config.validation)};
}

// A vocabulary made from the training text, once for all runs on it.
std::shared_ptr<const Tokenizer> trained(const TokenizerKind& kind, const TrainConfig& config, const TextSource& text) {
  const std::string what = format_message("{}-{}-{}", {kind.name, config.model.vocab, name_of(config.eos)});
  return tokenizer_from_json(remembered(text, what, default_cache_folder(), [&] {
    return train_tokenizer(kind, text, {.vocab = config.model.vocab}, {.behind = config.eos})->to_json();
  }));
}

std::shared_ptr<const Tokenizer> make_tokenizer(const TrainConfig& config, const TextSource& text, const TextSource& train) {
  const TokenizerKind* const kind = find_tokenizer_kind(config.tokenizer);
  if (!kind) return with_eos(open_tokenizer(find_data(config.tokenizer).string()), config.eos, EosOptions().piece);
  if (kind->needs_size && config.model.vocab == 0) fail("model.vocab: 0, but the vocabulary of tokenizer: {} is made here; it needs the number of its tokens", {kind->name});
  if (config.tokenizer == "char" && config.eos == Eos::none)
    return std::make_shared<CharTokenizer>(CharTokenizer::of_text(text, default_cache_folder()));
  return trained(*kind, config, train);
}

}  // namespace

// Checkpoints hold this number, so that its text stays that of the first version, which wrote hashes as signed numbers.
uint64_t Corpus::hash() const {
  return hash_bytes(format_message("{} {}", {static_cast<int64_t>(train.hash()), static_cast<int64_t>(validation.hash())}));
}

Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  const TextSource text = open_text(config.data);
  const Split split = open_split(config, text);
  if (!tokenizer) tokenizer = make_tokenizer(config, text, split.train);
  const std::string cache = default_cache_folder();
  return {tokenizer, TokenFile::open(split.train, *tokenizer, cache), TokenFile::open(split.validation, *tokenizer, cache)};
}

int64_t vocab_of(const TrainConfig& config, const Tokenizer& tokenizer) {
  const int64_t size = tokenizer.vocab_size(), asked = config.model.vocab;
  if (asked != 0 && asked != size) fail("model.vocab: {}, but the {} tokenizer has {} tokens; 0 takes its number", {asked, tokenizer.name(), size});
  return size;
}

TextSource validation_text(const TrainConfig& config) { return open_split(config, open_text(config.data)).validation; }

TextSource text_of(const std::vector<std::string>& paths) { return open_text(paths); }

TokenFile open_tokens(const std::vector<std::string>& paths, const Tokenizer& tokenizer) {
  return TokenFile::open(open_text(paths), tokenizer, default_cache_folder());
}

TokenFile open_validation(const TrainConfig& config, const Tokenizer& tokenizer) {
  return TokenFile::open(validation_text(config), tokenizer, default_cache_folder());
}

}  // namespace ricci::apps
