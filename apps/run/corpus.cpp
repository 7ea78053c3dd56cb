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
#include "data/shards/document_reader.h"
#include "data/shards/store.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/kinds.h"

// The assembler puts the file that CMake took out of embedded.tar.gz between two labels.
__asm__(".section .rodata\n"
        ".global ricci_embedded_corpus\n"
        "ricci_embedded_corpus:\n"
        ".incbin \"" RICCI_EMBEDDED_CORPUS "\"\n"
        ".global ricci_embedded_corpus_end\n"
        "ricci_embedded_corpus_end:\n"
        ".byte 0\n"
        ".previous\n");
extern "C" const char ricci_embedded_corpus[], ricci_embedded_corpus_end[];

namespace ricci::apps {

std::string_view embedded_corpus() {
  return {ricci_embedded_corpus, static_cast<size_t>(ricci_embedded_corpus_end - ricci_embedded_corpus)};
}

namespace {

bool is_cut(const TrainConfig& config) { return config.validation.empty(); }
bool is_mixed(const TrainConfig& config) { return !config.weights.empty(); }

// ---- The files of a config
// A path that is not found comes back as it is: it names the built-in text, or opening it reports the error.
std::string found_or_given(const std::string& path) { return look_for_data(path).value_or(path).string(); }

// Error: some are and some are not.
bool are_shards(const std::vector<std::string>& paths) {
  const auto is = [](const std::string& path) { return about_data([&] { return names_shards(found_or_given(path)); }); };
  const auto shards = std::find_if(paths.begin(), paths.end(), is), text = std::find_if_not(paths.begin(), paths.end(), is);
  if (shards != paths.end() && text != paths.end())
    fail("data: {} holds shards and {} is a text; ricci-prepare makes shards of texts", {*shards, *text});
  return shards != paths.end();
}

TextSource open_text(const TrainConfig& config, const std::vector<std::string>& paths) {
  const BuiltInText built_in[] = {{"embedded", embedded_corpus()}};
  const bool list = paths.size() != 1 || paths[0] == built_in[0].name;  // one path may be several, with commas between them
  return (list ? TextSource::of_paths(paths, built_in) : TextSource(paths[0])).read_as(config.encoding);
}

// A text, or documents.
StoreSource source_of(const TrainConfig& config, const std::vector<std::string>& paths) {
  StoreSource source{.files = open_text(config, paths)};
  if (!traits_of(config.format).is_text())
    source.documents = {.format = config.format,
        .text_field = config.text_field,
        .label_field = config.label_field,
        .classes = is_classifier(config) ? config.model.settings<Classifier>().classes : 0,
        .labels = is_classifier(config) ? config.labels : std::vector<std::string>()};
  if (is_cut(config)) source.train_fraction = config.train_fraction;
  return source;
}

// The names of a classifier's classes: as given, or the words that are labels in the data.
std::vector<std::string> labels_of(const TrainConfig& config) {
  if (!is_classifier(config) || traits_of(config.format).is_text() || !config.labels.empty()) return config.labels;
  const StoreSource source = source_of(config, config.data);
  std::vector<std::string> labels = word_labels(source.files, source.documents);
  if (const int64_t classes = source.documents.classes; !labels.empty() && std::ssize(labels) != classes)
    fail("model.classes: {}, but {} has labels of {} kinds, from '{}' to '{}'",
        {classes, source.files.name(), labels.size(), one_line(labels.front()), one_line(labels.back())});
  return labels;
}

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
  const TextSource all = open_text(config, config.data);
  if (traits_of(config.format).is_text()) return train(config, kind, all_cut > 0 ? all.part("train", 0, all_cut) : all);
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
  if (joins_documents(config) && config.eos == Eos::document && tokenizer.eos() == Eos::none)
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
  if (!traits_of(config.format).is_text() && !reads_text) reject("format", name_of(config.format), "--format");
}

// Error: the config names a tokenizer, and the shards have another one.
void check_tokenizer(const TrainConfig& config, const std::string& path, const Tokenizer& theirs) {
  if (config.tokenizer == TrainConfig().tokenizer || config.tokenizer == theirs.name()) return;
  auto asked = read_tokenizer(config);
  if (asked && theirs.eos() == Eos::document) asked = with_eos(asked, Eos::document, end_of_text(theirs));
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
  return train(config, *kind, Texts([](const TextPieces::CompletePrefix&, const Texts::Use&) {}));
}

// ---- Training and validation
struct Parts {
  std::vector<Tokens> train, validation;
  std::optional<TextSource> text = {};  // the text that validates, or all of it if it is not cut; only if it is plain and one source
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

// Warns of the documents of a classifier that have no text, which its shards lack, and of a cache that cannot be used.
void warn_of(const std::vector<StoreSource>& sources, const std::vector<StoredSource>& stored) {
  if (find_launcher().rank != 0) return;  // all ranks read the same files
  const auto warn = [](const std::string& text) { std::fprintf(stderr, "warning: %s\n", text.c_str()); };
  std::string fault;
  for (size_t i = 0; i < stored.size(); ++i) {
    if (fault.empty()) fault = stored[i].cache_fault;
    if (stored[i].empty_documents > 0 && sources[i].documents.classes > 0)
      warn(format_message(
          "{}: documents without text, which are left out: {}", {one_line(sources[i].files.name()), stored[i].empty_documents}));
  }
  if (!fault.empty()) warn(one_line(fault, fault.size()) + "; the text is not cached, and the next start encodes it again");
}

// Every entry of data is a source where they are to be mixed, else all together are one.
Parts open_texts(const TrainConfig& config, std::shared_ptr<const Tokenizer>& tokenizer) {
  std::vector<StoreSource> sources;
  if (is_mixed(config))
    for (const std::string& path : config.data) sources.push_back(source_of(config, {path}));
  else sources.push_back(source_of(config, config.data));
  if (!tokenizer) tokenizer = read_tokenizer(config);
  const std::vector<StoredSource> all =
      open_sources(sources, encoder_of(config, tokenizer), request_of(config, sources), default_cache_folder());
  warn_of(sources, all);
  if (!is_chat(config)) tokenizer = all[0].tokenizer;
  Parts parts;
  for (const StoredSource& stored : all) {
    parts.train.push_back(stored.train);
    if (stored.validation) parts.validation.push_back(*stored.validation);
  }
  if (!is_mixed(config) && traits_of(config.format).is_text())
    parts.text = is_cut(config) ? sources[0].files.part("validation", all[0].cut) : sources[0].files;
  return parts;
}

// Error: a classifier cannot learn from these tokens.
void check_labels(const TrainConfig& config, const Tokens& tokens) {
  if (!is_classifier(config)) return;
  const int64_t classes = config.model.settings<Classifier>().classes;
  if (tokens.classes() == 0)
    fail("data: {} has no labels, but model.family: classifier learns from them; format: {} with label_field reads them, and so does "
         "ricci-prepare",
        {tokens.name(), list_of_formats(&FormatTraits::has_fields, " or ")});
  if (tokens.classes() > classes)
    fail("data: {} has labels of {} classes, but model.classes: {}", {tokens.name(), tokens.classes(), classes});
}

// The files of `data`: a tokenizer that is null is made or read.
Parts open_data(const TrainConfig& config, std::shared_ptr<const Tokenizer>& tokenizer) {
  const bool shards = are_shards(config.data);
  if (shards && !tokenizer) tokenizer = tokenizer_for_shards(config);
  Parts parts = shards ? open_shards(config, tokenizer) : open_texts(config, tokenizer);
  for (const std::vector<Tokens>* some : {&parts.train, &parts.validation})
    for (const Tokens& each : *some) check_labels(config, each);
  return parts;
}

// The training keeps the conversations that have something to learn from. Returns a line with counts.
std::string kept_conversations(const TrainConfig& config, std::vector<Tokens>& train, const Tokens& validation) {
  const int64_t context = config.sequence_length();
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
  return {std::make_shared<CharTokenizer>(letters.substr(0, static_cast<size_t>(config.sorting.symbols))), {train}, train, {held_out}};
}

}  // namespace

// Checkpoints hold this number. It is the hash of a text with the hashes of both parts, written as signed numbers.
uint64_t Corpus::hash() const {
  return hash_bytes(format_message("{} {}", {static_cast<int64_t>(train.hash()), static_cast<int64_t>(validation.tokens.hash())}));
}

Corpus open_corpus(const TrainConfig& asked, std::shared_ptr<const Tokenizer> tokenizer) {
  if (asked.data.empty()) fail("data: nothing given");
  if (is_sorting(asked)) return generated(asked);
  TrainConfig config = asked;
  if (!are_shards(asked.data)) config.labels = labels_of(asked);
  Parts parts = open_data(config, tokenizer);
  const Validation validation =
      is_cut(config) ? Validation{join(std::move(parts.validation)), parts.text} : open_validation(config, {}, tokenizer);
  std::string note;
  if (is_chat(config)) note += kept_conversations(config, parts.train, validation.tokens);
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

Validation open_validation(const TrainConfig& config, const std::vector<std::string>& paths, std::shared_ptr<const Tokenizer> tokenizer) {
  const std::vector<std::string>& files = paths.empty() ? config.validation : paths;
  if (files.empty()) return open_corpus(config, tokenizer).validation;
  TrainConfig whole = config;  // these files are read as the data of a training is, but neither cut nor mixed
  whole.data = whole.validation = files;
  whole.weights.clear();
  Parts parts = open_data(whole, tokenizer);
  return {join(std::move(parts.train)), parts.text};
}

}  // namespace ricci::apps
