#include "apps/run/corpus.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "cuda/ranks/launcher.h"
#include "data/feeds/conversations.h"
#include "data/feeds/sorter.h"
#include "data/shards/store.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/kinds.h"

namespace ricci::apps {
namespace {

bool is_cut(const TrainConfig& config) { return config.validation.empty(); }
bool is_mixed(const TrainConfig& config) { return is_shuffled(config) && !config.weights.empty(); }

// ---- Tokenizers
// The tokenizer that the texts of the config are encoded by: lines of messages by one that knows their template.
std::shared_ptr<const Tokenizer> encoder_of(const TrainConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer) {
  if (!is_chat(config)) return tokenizer;
  if (!tokenizer)
    fail("tokenizer: {}, but format: messages needs one with the markers of chat: a file, or the tokenizer of init", {config.tokenizer});
  return std::make_shared<ChatTokenizer>(tokenizer, chat_template(config.chat));
}

// Returns null if it is made from the texts. Nothing is added to the vocabulary of a file unless the user asked for it.
std::shared_ptr<const Tokenizer> read_tokenizer(const TrainConfig& config) {
  if (find_tokenizer_kind(config.tokenizer)) return nullptr;
  const auto place = look_for_data(config.tokenizer);
  if (!place && config.tokenizer == kFormerKind)
    fail("tokenizer: {} vocabularies are no longer trained; name a vocab.txt or a tokenizer.json, or train tokenizer: bpe", {kFormerKind});
  if (!place)
    fail("tokenizer: {} is not there; ricci-tokenize train TEXT -o {} makes one, and the first lines of a run file may have the command",
        {config.tokenizer, config.tokenizer});
  const auto tokenizer = open_tokenizer(place->string());
  if (!follows_tokenizer_eos(config)) return with_eos(tokenizer, config.eos);
  return config.eos == Eos::document ? with_own_eos(tokenizer) : tokenizer;
}

std::shared_ptr<const Tokenizer> train(const TrainConfig& config, const TokenizerKind& kind, const Texts& texts) {
  const bool has_end = kind.takes_eos || !follows_tokenizer_eos(config);
  return train_tokenizer(kind, texts, {.vocab = config.model.vocab}, {.after = has_end ? config.eos : Eos::none});
}

// From the training text of all sources as one, or from the documents that train.
std::shared_ptr<const Tokenizer> train(const TrainConfig& config, const TokenizerKind& kind, const std::vector<StoreSource>& sources,
    const std::vector<int64_t>& cuts, int64_t all_cut) {
  const TextSource all = open_text(config.data).read_as(config.encoding);
  if (config.format == DocumentFormat::text) return train(config, kind, all_cut > 0 ? all.part("train", 0, all_cut) : all);
  return train(config, kind, Texts([&](const TextPieces::CompletePrefix& complete_prefix, const Texts::Use& use) {
    for (size_t i = 0; i < sources.size(); ++i)
      documents_of(sources[i].files, sources[i].documents, cuts[i] > 0 ? cuts[i] : INT64_MAX).for_each_piece(complete_prefix, use);
  }));
}

// The tokenizer that the config asks for. Characters include the validation text's where it is cut from the same files.
TokenizerRequest request_of(const TrainConfig& config, const std::vector<StoreSource>& sources) {
  const TokenizerKind* const kind = find_tokenizer_kind(config.tokenizer);
  if (!kind) return {};
  if (kind->needs_size && config.model.vocab == 0)
    fail("tokenizer: {} needs the size of its vocabulary, as in model.vocab=4000", {kind->name});
  const bool of_characters = config.tokenizer == "char";
  // The config.yaml of older runs has the size, also where it was not asked for.
  const auto key = [&](int64_t vocab) { return format_message("{} {} {}", {kind->name, vocab, name_of(config.eos)}); };
  return {kind->options[0] == '\0' ? std::vector{key(0)} : std::vector{key(config.model.vocab), key(0)}, of_characters,
      [=, &config](const std::string& characters, const std::vector<int64_t>& cuts, int64_t all_cut) -> std::shared_ptr<const Tokenizer> {
        if (of_characters) return with_eos(std::make_shared<CharTokenizer>(characters), config.eos);
        return train(config, *kind, sources, cuts, all_cut);
      }};
}

// True if the tokenizer is made from the text, with as many tokens as the config asks for.
bool trains_vocabulary(const TrainConfig& config) {
  const TokenizerKind* const kind = find_tokenizer_kind(config.tokenizer);
  return kind && reads_option(*kind, "vocab") && !are_shards(config.data);
}

// A line about a vocabulary that came out smaller than it was asked for, and one about documents that nothing separates.
std::string notes_on_tokenizer(const TrainConfig& config, const Tokenizer& tokenizer) {
  std::string notes;
  if (trains_vocabulary(config) && config.model.vocab > tokenizer.vocab_size())
    notes += format_message("model.vocab: {} instead of {}; tokenizer: {} finds no more tokens in this text\n",
        {with_commas(tokenizer.vocab_size()), with_commas(config.model.vocab), config.tokenizer});
  if (joins_documents(config) && config.eos == Eos::document && eos_of(tokenizer) == Eos::none)
    notes += format_message("nothing separates the documents, because the {} tokenizer has no end-of-text token; {}\n",
        {tokenizer.name(), config.tokenizer != "byte" ? "eos=document adds <eos>" : "tokenizer=char gets one"});
  return notes;
}

// ---- Shards
// Error: a key asks for what shards do not do, whether they bring their tokenizer or not.
void check_shards_do(const TrainConfig& config, const std::string& path) {
  const auto reject = [&](const char* key, const std::string& value, const char* option) {
    fail("{}: {}, but {} holds tokens already; ricci-prepare {} makes such", {key, value, path, option});
  };
  if (is_chat(config)) fail("format: messages, but {} holds tokens already; data names files with lines of messages", {path});
  if (config.eos != Eos::none && !follows_tokenizer_eos(config)) reject("eos", name_of(config.eos), "--eos");
  const bool reads_text = !config.validation.empty() && !are_shards(config.validation);
  if (config.format != DocumentFormat::text && !reads_text) reject("format", name_of(config.format), "--format");
}

// Error: the config names a tokenizer, and the shards have another one.
void check_tokenizer(const TrainConfig& config, const std::string& path, const Tokenizer& theirs) {
  if (config.tokenizer == TrainConfig().tokenizer || config.tokenizer == theirs.name()) return;
  auto asked = read_tokenizer(config);
  if (asked && eos_of(theirs) == Eos::document) asked = with_eos(asked, Eos::document, end_of_text(theirs));
  if (!asked || asked->hash() != theirs.hash())
    fail("tokenizer: {}, but {} brings its own, a {} tokenizer of {} tokens", {config.tokenizer, path, theirs.name(), theirs.vocab_size()});
}

std::shared_ptr<const Tokenizer> tokenizer_for_shards(const TrainConfig& config) {
  const std::string first = found_or_given(config.data[0]);
  check_shards_do(config, first);
  if (has_tokenizer(first)) {
    const auto theirs = tokenizer_of_shards(first);
    check_tokenizer(config, first, *theirs);
    return theirs;
  }
  if (const auto read = read_tokenizer(config)) return read;
  const TokenizerKind* const kind = find_tokenizer_kind(config.tokenizer);
  if (config.tokenizer != "byte")
    fail(
        "tokenizer: {} is made from a text, but {} holds tokens; name the file of the tokenizer that made them", {config.tokenizer, first});
  return train(config, *kind, TextSource::of_paths({"none"}, std::array{BuiltInText{"none", ""}}));
}

// ---- Training and validation
struct Parts {
  std::vector<Tokens> train, validation;
};

Parts open_shards(const TrainConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer) {
  Parts parts;
  for (const std::string& path : config.data) {
    const ShardedTokens whole = ShardedTokens::open(found_or_given(path), *tokenizer);
    if (!is_cut(config)) {
      parts.train.push_back(whole);
      continue;
    }
    const auto [train, validation] = whole.split(config.train_fraction);
    parts.train.push_back(train);
    parts.validation.push_back(validation);
  }
  return parts;
}

// Warns of the documents of a classifier that have no text, which its shards lack. All ranks read the same files; rank 0 says it.
void tell_empty_documents(const StoreSource& source, int64_t count) {
  if (count > 0 && source.documents.classes > 0 && find_launcher().rank == 0)
    std::fputs(
        format_message("warning: {}: documents without text, which are left out: {}\n", {one_line(source.files.name()), count}).c_str(),
        stderr);
}

// The sources in the cache, or elsewhere if it cannot be used. Prints the warnings about them.
std::vector<StoredSource> open_cached(
    const std::vector<StoreSource>& sources, const std::shared_ptr<const Tokenizer>& tokenizer, const TokenizerRequest& request) {
  std::vector<StoredSource> all = open_sources(sources, tokenizer, request, default_cache_folder());
  std::string fault;
  for (size_t i = 0; i < all.size(); ++i) {
    if (fault.empty()) fault = all[i].cache_fault;
    tell_empty_documents(sources[i], all[i].empty_documents);
  }
  if (!fault.empty() && find_launcher().rank == 0)
    std::fprintf(
        stderr, "warning: %s; the text is not cached, and the next start encodes it again\n", one_line(fault, fault.size()).c_str());
  return all;
}

// Every entry of data is a source where they are to be mixed, else all together are one.
Parts open_texts(const TrainConfig& config, std::shared_ptr<const Tokenizer>& tokenizer) {
  std::vector<StoreSource> sources;
  if (is_mixed(config))
    for (const std::string& path : config.data) sources.push_back(source_of(config, {path}, is_cut(config)));
  else sources.push_back(source_of(config, config.data, is_cut(config)));
  if (!tokenizer) tokenizer = read_tokenizer(config);
  const auto encoder = encoder_of(config, tokenizer);
  Parts parts;
  for (const StoredSource& stored : open_cached(sources, encoder, request_of(config, sources))) {
    if (!is_chat(config)) tokenizer = stored.tokenizer;
    parts.train.push_back(stored.train);
    if (stored.validation) parts.validation.push_back(*stored.validation);
  }
  return parts;
}

// Error: a classifier cannot learn from these tokens.
void check_labels(const TrainConfig& config, const Tokens& tokens) {
  if (!is_classifier(config)) return;
  const int64_t classes = config.model.settings<Classifier>().classes;
  if (tokens.classes() == 0)
    fail("data: {} has no labels, but model.family: classifier learns from them; format: jsonl or tsv with label_field reads them, and so "
         "does ricci-prepare",
        {tokens.name()});
  if (tokens.classes() > classes)
    fail("data: {} has labels of {} classes, but model.classes: {}", {tokens.name(), tokens.classes(), classes});
}

// The training keeps the conversations that have something to learn from. Returns a line with counts.
std::string kept_conversations(const TrainConfig& config, std::vector<Tokens>& train, const Tokens& validation) {
  const int64_t context = config.context.value_or(config.model.ctx);
  const ConversationCounts counts = keep_conversations(train, validation, context);
  std::string line = counted(counts.all, "conversation");
  if (counts.cut) line += format_message(", {} cut at {} tokens", {with_commas(counts.cut), context});
  if (counts.left_out) line += format_message(", {} left out (no answer in the first {} tokens)", {with_commas(counts.left_out), context});
  return line + "\n";
}

// ---- The sorter
Corpus generated(const TrainConfig& config) {
  constexpr int64_t kTraining = 1 << 20, kHeldOut = 1024;  // rows
  const auto rows = [&](SortingRows::Subset subset, int64_t count) {
    return SortingRows(config.sorting.symbols, config.sorting.length, subset, count);
  };
  const Tokens train = rows(SortingRows::Subset::training, kTraining), held_out = rows(SortingRows::Subset::held_out, kHeldOut);
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  return {std::make_shared<CharTokenizer>(letters.substr(0, static_cast<size_t>(config.sorting.symbols))), {train}, train, held_out};
}

}  // namespace

// Checkpoints hold this number. It is the hash of a text with the hashes of both parts, written as signed numbers.
uint64_t Corpus::hash() const {
  return hash_bytes(format_message("{} {}", {static_cast<int64_t>(train.hash()), static_cast<int64_t>(validation.hash())}));
}

Corpus open_corpus(const TrainConfig& asked, std::shared_ptr<const Tokenizer> tokenizer) {
  if (asked.data.empty()) fail("data: nothing given");
  if (is_sorting(asked)) return generated(asked);
  const bool shards = are_shards(asked.data);
  TrainConfig config = asked;
  if (!shards) config.labels = labels_of(asked);
  std::string note;
  if (shards && !tokenizer) tokenizer = tokenizer_for_shards(config);
  Parts parts = shards ? open_shards(config, tokenizer) : open_texts(config, tokenizer);
  if (!is_cut(config)) parts.validation.push_back(open_tokens(config, config.validation, tokenizer));
  for (const Tokens& each : parts.train) check_labels(config, each);
  for (const Tokens& each : parts.validation) check_labels(config, each);
  const Tokens validation = join(std::move(parts.validation));
  if (is_chat(config)) note += kept_conversations(config, parts.train, validation);
  note += notes_on_tokenizer(config, *tokenizer);
  const Tokens train = join(parts.train);
  return {tokenizer, std::move(parts.train), train, validation, note, config.labels};
}

int64_t vocab_of(const TrainConfig& config, const Tokenizer& tokenizer) {
  const int64_t size = tokenizer.vocab_size(), asked = config.model.vocab;
  const bool is_file = !find_tokenizer_kind(config.tokenizer);
  if (asked != 0 && (asked < size || (asked > size && !is_file && !trains_vocabulary(config))))
    fail("model.vocab: {}, but the {} tokenizer has {} tokens; 0 takes its number", {asked, tokenizer.name(), size});
  return is_file ? std::max(asked, size) : size;
}

void resolve(TrainConfig& config, const Corpus& corpus) {
  config.model.vocab = std::min(config.model.vocab, vocab_of(config, *corpus.tokenizer));
  resolve_vocab(config, corpus.tokenizer->vocab_size());
  resolve_eos(config, *corpus.tokenizer);
  config.labels = corpus.labels;
}

Tokens open_tokens(const TrainConfig& config, const std::vector<std::string>& paths, const std::shared_ptr<const Tokenizer>& tokenizer) {
  std::vector<Tokens> all;
  if (are_shards(paths))
    for (const std::string& path : paths) all.push_back(ShardedTokens::open(found_or_given(path), *tokenizer));
  else all.push_back(open_cached({source_of(config, paths, false)}, encoder_of(config, tokenizer), {})[0].train);
  for (const Tokens& each : all) check_labels(config, each);
  return join(std::move(all));
}

Tokens open_validation(const TrainConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer) {
  if (!is_cut(config)) return open_tokens(config, config.validation, tokenizer);
  return open_corpus(config, tokenizer).validation;
}

std::optional<TextSource> text_of(
    const TrainConfig& config, const std::vector<std::string>& paths, const std::shared_ptr<const Tokenizer>& tokenizer) {
  const bool reads_end = paths.empty() && is_cut(config);
  const std::vector<std::string>& given = paths.empty() ? config.validation : paths;
  const std::vector<std::string>& read = reads_end ? config.data : given;
  if ((reads_end && (is_sorting(config) || is_mixed(config))) || config.format != DocumentFormat::text || are_shards(read)) return {};
  const StoreSource source = source_of(config, read, reads_end);
  if (!reads_end) return source.files;
  const int64_t cut = open_sources({source}, tokenizer, request_of(config, {source}), default_cache_folder())[0].cut;
  return source.files.part("validation", cut);
}

}  // namespace ricci::apps
