#include "apps/run/corpus/corpus.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "apps/run/corpus/embedded_corpus.h"
#include "core/error.h"
#include "core/files/hash.h"
#include "data/documents/document_tokens.h"
#include "data/documents/members.h"
#include "data/shards/sharded_tokens.h"
#include "data/sorting.h"
#include "data/text/split.h"
#include "data/text/text_cache.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/open.h"
#include "data/tokens/joined_tokens.h"
#include "data/tokens/token_file.h"

namespace ricci::apps {
namespace {

TextSource open_text(const std::vector<std::string>& paths) {
  const BuiltInText built_in[] = {{"embedded", embedded_corpus()}};
  const bool list = paths.size() != 1 || paths[0] == built_in[0].name;  // one path may be several, with commas between them
  return list ? TextSource::of_paths(paths, built_in) : TextSource(paths[0]);
}

// Error: an archive, whose headers would be read as text.
TextSource open_plain_text(const std::vector<std::string>& paths) {
  const TextSource text = open_text(paths);
  for (const TextSource& file : text.each_file())
    if (is_archive(file)) fail("data: {} is a tar archive; ricci-prepare reads its members", {file.name()});
  return text;
}

Split open_split(const TrainConfig& config, const TextSource& text) {
  if (config.validation.empty()) return split_by_characters(text, config.train_fraction, default_cache_folder());
  return {text, open_plain_text(config.validation)};
}

// A vocabulary made from the training text, once for all runs on it.
std::shared_ptr<const Tokenizer> trained(const TokenizerKind& kind, const TrainConfig& config, const TextSource& text) {
  const std::string what = format_message("{}-{}-{}", {kind.name, config.model.vocab, name_of(config.eos)});
  return tokenizer_from_json(remembered(text, what, default_cache_folder(),
      [&] { return train_tokenizer(kind, text, {.vocab = config.model.vocab}, {.behind = config.eos})->to_json(); }));
}

std::shared_ptr<const Tokenizer> make_tokenizer(const TrainConfig& config, const TextSource& text, const TextSource& train) {
  const TokenizerKind* const kind = find_tokenizer_kind(config.tokenizer);
  if (!kind) return with_eos(open_tokenizer(find_data(config.tokenizer).string()), config.eos, EosOptions().piece);
  if (kind->needs_size && config.model.vocab == 0)
    fail("model.vocab: 0, but the vocabulary of tokenizer: {} is made here; it needs the number of its tokens", {kind->name});
  if (config.tokenizer == "char" && config.eos == Eos::none)
    return std::make_shared<CharTokenizer>(CharTokenizer::of_text(text, default_cache_folder()));
  return trained(*kind, config, train);
}

Tokens tokens_of(const TextSource& text, const Tokenizer& tokenizer) { return TokenFile::open(text, tokenizer, default_cache_folder()); }

// ---- Shards
std::string found_or_given(const std::string& path) {
  try {
    return find_data(path).string();
  } catch (const Error&) {  // a built-in text, or an error of the text that it is not
    return path;
  }
}

// Whether these are shards. Error: some are and some are not.
bool are_shards(const std::vector<std::string>& paths) {
  const auto is = [](const std::string& path) { return names_shards(found_or_given(path)); };
  const auto shards = std::find_if(paths.begin(), paths.end(), is), text = std::find_if_not(paths.begin(), paths.end(), is);
  if (shards != paths.end() && text != paths.end())
    fail("data: {} holds shards and {} is a text; ricci-prepare makes shards of texts", {*shards, *text});
  return shards != paths.end();
}

std::shared_ptr<const Tokenizer> tokenizer_for_shards(const TrainConfig& config) {
  const std::string first = found_or_given(config.data[0]);
  if (has_tokenizer(first)) return tokenizer_of_shards(first);
  const bool is_made = config.tokenizer != "byte" && find_tokenizer_kind(config.tokenizer);
  if (is_made)
    fail(
        "tokenizer: {} is made from a text, but {} holds tokens; name the file of the tokenizer that made them", {config.tokenizer, first});
  const TextSource none = TextSource::of_paths({"none"}, std::array{BuiltInText{"none", ""}});
  return make_tokenizer(config, none, none);
}

// ---- Training and validation
struct Parts {
  std::vector<Tokens> train, validation;
};

Parts open_shards(const TrainConfig& config, const Tokenizer& tokenizer) {
  Parts parts;
  for (const std::string& path : config.data) {
    const ShardedTokens whole = ShardedTokens::open(found_or_given(path), tokenizer);
    if (!config.validation.empty()) {
      parts.train.push_back(whole);
      continue;
    }
    const auto [train, validation] = whole.split(config.train_fraction);
    parts.train.push_back(train), parts.validation.push_back(validation);
  }
  if (!config.validation.empty()) parts.validation.push_back(open_tokens(config, config.validation, tokenizer));
  return parts;
}

bool is_mixed(const TrainConfig& config) { return is_shuffled(config) && !config.weights.empty(); }

// Every entry of data is a source where they are to be mixed, else all together are one.
Parts open_texts(const TrainConfig& config, const Tokenizer& tokenizer, const Split& all) {
  if (!is_mixed(config)) return {{tokens_of(all.train, tokenizer)}, {tokens_of(all.validation, tokenizer)}};
  Parts parts;
  for (const std::string& path : config.data) {
    const Split split = open_split(config, open_plain_text({path}));
    parts.train.push_back(tokens_of(split.train, tokenizer));
    if (config.validation.empty() || parts.validation.empty()) parts.validation.push_back(tokens_of(split.validation, tokenizer));
  }
  return parts;
}

// ---- JSONL and TSV
struct Records {
  std::string name;
  std::vector<Document> documents;
};

Records read_records(const TrainConfig& config, const std::vector<std::string>& paths) {
  const int64_t classes = is_classifier(config) ? config.model.of<Classifier>().classes : 0;
  const TextSource files = open_text(paths);
  return {
      files.name(), read_documents(files,
                        {.format = config.format, .text_field = config.text_field, .label_field = config.label_field, .classes = classes})};
}

Tokens tokens_of(const TrainConfig& config, const Records& records, const Tokenizer& tokenizer) {
  return DocumentTokens(records.name, records.documents, tokenizer, is_classifier(config) ? config.model.of<Classifier>().classes : 0);
}

// Leaves the first documents, and returns the others.
Records cut_validation(const TrainConfig& config, Records& all) {
  const auto documents = static_cast<int64_t>(all.documents.size());
  const auto train = static_cast<int64_t>(std::floor(static_cast<double>(documents) * config.train_fraction));
  if (train < 1 || train >= documents)
    fail("{}: has {} documents, too few for a training fraction of {}", {all.name, documents, config.train_fraction});
  Records rest{
      all.name + " (validation)", {std::make_move_iterator(all.documents.begin() + train), std::make_move_iterator(all.documents.end())}};
  all.documents.resize(static_cast<size_t>(train));
  all.name += " (train)";
  return rest;
}

// A vocabulary from the documents as one text in memory: those for training, and those that were cut from the same files.
std::shared_ptr<const Tokenizer> make_tokenizer(
    const TrainConfig& config, const std::vector<Records>& train, const std::vector<Records>& cut) {
  std::string text;
  const auto append = [&](const std::vector<Records>& all) {
    for (const Records& records : all)
      for (const Document& document : records.documents) text += document.text + '\n';
    return text.size();
  };
  const size_t train_bytes = append(train), all_bytes = append(cut);
  const std::string& name = train[0].name;
  const auto source = [&](size_t bytes) {
    return TextSource::of_paths({name}, std::array{BuiltInText{name, std::string_view(text).substr(0, bytes)}});
  };
  return make_tokenizer(config, source(all_bytes), source(train_bytes));
}

Parts open_records(const TrainConfig& config, std::shared_ptr<const Tokenizer>& tokenizer) {
  std::vector<Records> train, validation;
  if (is_mixed(config))
    for (const std::string& path : config.data) train.push_back(read_records(config, {path}));
  else train.push_back(read_records(config, config.data));
  if (config.validation.empty())
    for (Records& records : train) validation.push_back(cut_validation(config, records));
  else validation.push_back(read_records(config, config.validation));
  if (!tokenizer) tokenizer = make_tokenizer(config, train, config.validation.empty() ? validation : std::vector<Records>());
  Parts parts;
  for (const Records& records : train) parts.train.push_back(tokens_of(config, records, *tokenizer));
  for (const Records& records : validation) parts.validation.push_back(tokens_of(config, records, *tokenizer));
  return parts;
}

// Error: a classifier cannot learn from these tokens.
void check_labels(const TrainConfig& config, const Tokens& tokens) {
  if (!is_classifier(config)) return;
  const int64_t classes = config.model.of<Classifier>().classes;
  if (tokens.classes() == 0)
    fail("data: {} has no labels, but model.family: classifier learns from them; format: jsonl or tsv with label_field reads them, and so "
         "does ricci-prepare",
        {tokens.name()});
  if (tokens.classes() > classes)
    fail("data: {} has labels of {} classes, but model.classes: {}", {tokens.name(), tokens.classes(), classes});
}

// ---- The sorter
Corpus generated(const TrainConfig& config) {
  constexpr int64_t kTraining = 1 << 20, kHeldOut = 1024;  // rows
  const auto rows = [&](SortingRows::Part part, int64_t count) {
    return SortingRows(config.sorting.symbols, config.sorting.length, part, count);
  };
  const Tokens train = rows(SortingRows::Part::training, kTraining), held_out = rows(SortingRows::Part::held_out, kHeldOut);
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  return {std::make_shared<CharTokenizer>(letters.substr(0, static_cast<size_t>(config.sorting.symbols))), {train}, train, held_out};
}

}  // namespace

// Checkpoints hold this number. It is the hash of a text with the hashes of both parts, written as signed numbers.
uint64_t Corpus::hash() const {
  return hash_bytes(format_message("{} {}", {static_cast<int64_t>(train.hash()), static_cast<int64_t>(validation.hash())}));
}

Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  if (config.data.empty()) fail("data: nothing given");
  if (is_sorting(config)) return generated(config);
  Parts parts;
  if (are_shards(config.data)) {
    if (!tokenizer) tokenizer = tokenizer_for_shards(config);
    parts = open_shards(config, *tokenizer);
  } else if (config.format != DocumentFormat::text) {
    parts = open_records(config, tokenizer);
  } else {
    const TextSource text = open_plain_text(config.data);
    const Split split = open_split(config, text);
    if (!tokenizer) tokenizer = make_tokenizer(config, text, split.train);
    parts = open_texts(config, *tokenizer, split);
  }
  for (const Tokens& each : parts.train) check_labels(config, each);
  for (const Tokens& each : parts.validation) check_labels(config, each);
  const Tokens train = join(parts.train);
  return {tokenizer, std::move(parts.train), train, join(std::move(parts.validation))};
}

int64_t vocab_of(const TrainConfig& config, const Tokenizer& tokenizer) {
  const int64_t size = tokenizer.vocab_size(), asked = config.model.vocab;
  if (asked != 0 && asked != size)
    fail("model.vocab: {}, but the {} tokenizer has {} tokens; 0 takes its number", {asked, tokenizer.name(), size});
  return size;
}

Tokens open_tokens(const TrainConfig& config, const std::vector<std::string>& paths, const Tokenizer& tokenizer) {
  std::vector<Tokens> all;
  if (are_shards(paths))
    for (const std::string& path : paths) all.push_back(ShardedTokens::open(found_or_given(path), tokenizer));
  else if (config.format == DocumentFormat::text) all.push_back(tokens_of(open_plain_text(paths), tokenizer));
  else all.push_back(tokens_of(config, read_records(config, paths), tokenizer));
  for (const Tokens& each : all) check_labels(config, each);
  return join(std::move(all));
}

Tokens open_validation(const TrainConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer) {
  if (!config.validation.empty()) return open_tokens(config, config.validation, *tokenizer);
  return open_corpus(config, tokenizer).validation;
}

std::optional<TextSource> text_of(const TrainConfig& config, const std::vector<std::string>& paths) {
  const bool validates = paths.empty(), is_cut = validates && config.validation.empty();
  const std::vector<std::string>& read = is_cut ? config.data : validates ? config.validation : paths;
  if ((is_cut && is_sorting(config)) || config.format != DocumentFormat::text || are_shards(read) || (is_cut && is_mixed(config)))
    return {};
  return is_cut ? open_split(config, open_plain_text(read)).validation : open_plain_text(read);
}

}  // namespace ricci::apps
