#include "apps/run/corpus.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "cuda/ranks/ranks.h"
#include "data/feeds/evaluation.h"
#include "data/shards/cache.h"
#include "data/tokenizers/char_tokenizer.h"
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
// A path that is not found is returned as it is: it names the built-in text, or opening it reports the error.
std::string found_or_given(const std::string& path) { return look_for_data(path).value_or(path).string(); }

// Error: some are shards and some are not.
bool are_shards(const std::vector<std::string>& paths) {
  const auto is = [](const std::string& path) { return about("data", [&] { return names_shards(found_or_given(path)); }); };
  const auto shards = std::find_if(paths.begin(), paths.end(), is), text = std::find_if_not(paths.begin(), paths.end(), is);
  if (shards != paths.end() && text != paths.end())
    fail("data: {} holds shards and {} is a text; ricci-prepare turns texts into shards", {*shards, *text});
  return shards != paths.end();
}

// The files of a text form one document.
Documents documents_of(const TrainConfig& config, const std::vector<std::string>& paths) {
  const BuiltInText built_in[] = {{"embedded", embedded_corpus()}};
  const TextSource files = TextSource(paths, built_in).read_as(config.encoding);
  if (traits_of(config.format).is_text()) return {.files = files, .joined = true};
  DocumentOptions options{.format = config.format, .text_field = config.text_field, .label_field = config.label_field, .chat = config.chat};
  if (is_classifier(config)) {
    options.classes = config.model.settings<Classifier>().classes;
    options.labels = config.labels;
  }
  return {.files = files, .options = options};
}

// The names of a classifier's classes, from the config or from the words that label the data.
std::vector<std::string> labels_of(const TrainConfig& config) {
  if (!is_classifier(config) || traits_of(config.format).is_text() || !config.labels.empty()) return config.labels;
  const Documents documents = documents_of(config, config.data);
  std::vector<std::string> labels = word_labels(documents);
  if (const int64_t classes = documents.options.classes; !labels.empty() && std::ssize(labels) != classes)
    fail("model.classes: {}, but {} has labels of {} kinds, from '{}' to '{}'",
        {classes, documents.files.name(), labels.size(), one_line(labels.front()), one_line(labels.back())});
  return labels;
}

// ---- Tokenizers
// Null if it is made from the texts. A vocabulary from a file is extended only if the user asked for it.
std::shared_ptr<const Tokenizer> read_tokenizer(const TrainConfig& config) {
  if (find_tokenizer_kind(config.tokenizer)) return nullptr;
  const auto place = look_for_data(config.tokenizer);
  if (!place && config.tokenizer == kFormerKind)
    fail("tokenizer: {} vocabularies are no longer trained; name a vocab.txt or a tokenizer.json, or train tokenizer: bpe", {kFormerKind});
  if (!place)
    fail("tokenizer: {0} does not exist; ricci-tokenize train TEXT -o {0} makes one; the first lines of the run file can have the command",
        {config.tokenizer});
  const auto tokenizer = open_tokenizer(place->string());
  if (!follows_tokenizer_eos(config)) return with_eos(tokenizer, config.eos);
  return config.eos == Eos::document ? with_own_eos(tokenizer) : tokenizer;
}

// Makes the tokenizer that the config asks for: of all characters, or from the first `all_cut` characters or documents.
TokenizerRequest request_of(const TrainConfig& config) {
  const TokenizerKind* const kind = find_tokenizer_kind(config.tokenizer);
  if (!kind) return {};
  if (kind->needs_size && config.model.vocab == 0)
    fail("tokenizer: {} needs the size of its vocabulary, as in model.vocab=4000", {kind->name});
  const bool of_characters = config.tokenizer == "char";
  const bool has_size = reads_option(*kind, "vocab") && config.given.contains("model.vocab");
  const int64_t size =
      has_size ? config.model.vocab : 0;  // the size that was asked for, because the config of a trained run has the resulting one
  return {format_message("{} {} {}", {kind->name, size, name_of(config.eos)}), of_characters,
      [=, &config](const std::string& characters, int64_t all_cut) -> std::shared_ptr<const Tokenizer> {
        if (of_characters) return with_eos(std::make_shared<CharTokenizer>(characters), config.eos);
        Documents all = documents_of(config, config.data);
        if (all.joined) all.cut = all_cut;
        if (all_cut > 0) all.limit = all.joined ? 1 : all_cut;
        const bool has_end = kind->takes_eos || !follows_tokenizer_eos(config);
        return train_tokenizer(*kind, all, {.vocab = config.model.vocab}, {.after = has_end ? config.eos : Eos::none});
      }};
}

// True if the tokenizer is made from the text, with the number of tokens that the config asks for.
bool trains_vocabulary(const TrainConfig& config) {
  const TokenizerKind* const kind = find_tokenizer_kind(config.tokenizer);
  return kind && reads_option(*kind, "vocab") && !are_shards(config.data);
}

// Lines about a vocabulary that is smaller than asked for, and about documents without an end token.
std::string notes_on_tokenizer(const TrainConfig& config, const Tokenizer& tokenizer) {
  std::string notes;
  if (trains_vocabulary(config) && config.model.vocab > tokenizer.vocab_size())
    notes += format_message("model.vocab: {} instead of {}: this text has no more tokens for {}\n",
        {with_commas(tokenizer.vocab_size()), with_commas(config.model.vocab), config.tokenizer});
  if (ends_documents(config) && config.eos == Eos::document && tokenizer.eos() == Eos::none)
    notes += format_message("nothing separates the documents: the {} tokenizer has no end-of-text token;\n{}\n",
        {tokenizer.name(), config.tokenizer != "byte" ? "eos=document adds <eos>" : "tokenizer=char gets one"});
  return notes;
}

// ---- Shards
// Checkpoints hold this hash of both hashes, written as signed numbers.
uint64_t hash_of_both(uint64_t train, uint64_t validation) {
  return hash_bytes(format_message("{} {}", {static_cast<int64_t>(train), static_cast<int64_t>(validation)}));
}

// Error: a key that only texts can obey, because shards hold tokens already.
void check_shards_do(const TrainConfig& config, const std::string& path) {
  const bool reads_text = has_mask(config) || (!config.validation.empty() && !are_shards(config.validation));
  const bool asks_for_eos = config.eos != Eos::none && !follows_tokenizer_eos(config);
  if (asks_for_eos || (!traits_of(config.format).is_text() && !reads_text))
    fail("{0}: {1}, but {2} holds tokens already; ricci-prepare --{0} prepares them so",
        {asks_for_eos ? "eos" : "format", asks_for_eos ? name_of(config.eos) : name_of(config.format), path});
}

// Error: the config names a tokenizer, and the shards have another one.
void check_tokenizer(const TrainConfig& config, const std::string& path, const Tokenizer& theirs) {
  if (config.tokenizer == TrainConfig().tokenizer || config.tokenizer == theirs.name()) return;
  auto asked = read_tokenizer(config);
  if (asked && asked->eos() == Eos::none && theirs.eos() == Eos::document) asked = with_eos(asked, Eos::document, end_of_text(theirs));
  if (!asked || asked->hash() != theirs.hash())
    fail("tokenizer: {}, but {} has its own, a {} tokenizer of {} tokens", {config.tokenizer, path, theirs.name(), theirs.vocab_size()});
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
  if (config.tokenizer == "byte") return std::make_shared<ByteTokenizer>();
  fail("tokenizer: {} is made from a text, but {} holds tokens; name the file of the tokenizer that made them", {config.tokenizer, first});
}

// ---- Training and validation
// Error: the family or the format cannot learn from these tokens.
void check_tokens(const TrainConfig& config, const Tokens& tokens) {
  const int64_t classes = is_classifier(config) ? config.model.settings<Classifier>().classes : INT64_MAX;
  if (is_classifier(config) && tokens.classes() == 0)
    fail("data: {} has no labels, but model.family: classifier learns from them; format: {} with label_field reads them, and so does "
         "ricci-prepare",
        {tokens.name(), list_of_formats(&FormatTraits::has_fields, " or ")});
  if (tokens.classes() > classes)
    fail("data: {} has labels of {} classes, but model.classes: {}", {tokens.name(), tokens.classes(), classes});
  if (tokens.has_mask() == has_mask(config)) return;
  if (has_mask(config))
    fail("format: {0}, but {1} has no answers; ricci-prepare --format {0} makes shards with answers",
        {name_of(config.format), tokens.name()});
  fail("format: {}, but only the answers in {} count; the formats {} learn from answers",
      {name_of(config.format), tokens.name(), list_of_formats(&FormatTraits::has_mask, " and ")});
}

// The tokens of `data` for training and validation.
struct Parts {
  std::vector<Tokens> train, validation;
  std::optional<TextSource> text = {};  // if all data is one plain text
  int64_t from_byte = 0;

  void add(const TrainConfig& config, const Tokens& tokens, bool is_joined) {
    check_tokens(config, tokens);
    if (!is_cut(config)) return train.push_back(tokens);
    const auto [first, rest] = is_joined ? tokens.split_at_cut() : tokens.split(config.train_fraction);
    train.push_back(first);
    validation.push_back(rest);
  }
};

// Warns of documents without text, because a classifier cannot learn from them, and of an unusable cache.
void warn_of(const std::vector<Documents>& sources, const std::vector<CachedText>& cached) {
  if (find_launcher().rank != 0) return;  // all ranks read the same files
  const auto warn = [](const std::string& text) { std::fprintf(stderr, "warning: %s\n", text.c_str()); };
  std::string fault;
  for (size_t i = 0; i < cached.size(); ++i) {
    if (fault.empty()) fault = cached[i].fault;
    if (cached[i].empty_documents > 0 && sources[i].options.classes > 0)
      warn(format_message(
          "{}: documents without text, which are left out: {}", {one_line(sources[i].files.name()), cached[i].empty_documents}));
  }
  if (!fault.empty()) warn(one_line(fault, fault.size()) + "; the text is not cached, and the next start encodes it again");
}

// Each entry of data is a source if `weights` mixes them, otherwise all form one.
Parts open_texts(const TrainConfig& config, std::shared_ptr<const Tokenizer>& tokenizer) {
  std::vector<Documents> sources;
  if (is_mixed(config))
    for (const std::string& path : config.data) sources.push_back(documents_of(config, {path}));
  else sources.push_back(documents_of(config, config.data));
  if (!tokenizer) tokenizer = read_tokenizer(config);
  if (!tokenizer && is_chat(config))
    fail("tokenizer: {}, but format: messages needs one with the markers of chat: a file, or the tokenizer of init", {config.tokenizer});
  const double train_fraction = is_cut(config) ? config.train_fraction : 0;
  const std::vector<CachedText> all = open_cached(sources, train_fraction, tokenizer, request_of(config), default_cache_folder());
  warn_of(sources, all);
  tokenizer = all[0].tokenizer;
  Parts parts;
  for (const CachedText& each : all) parts.add(config, each.tokens, sources[0].joined);
  if (!is_mixed(config) && sources[0].joined) parts.text = sources[0].files;
  parts.from_byte = all[0].cut_byte;
  return parts;
}

// Makes or reads the tokenizer if it is null.
Parts open_data(const TrainConfig& config, std::shared_ptr<const Tokenizer>& tokenizer) {
  if (!are_shards(config.data)) return open_texts(config, tokenizer);
  if (!tokenizer) tokenizer = tokenizer_for_shards(config);
  Parts parts;
  for (const std::string& path : config.data) parts.add(config, Tokens::open(found_or_given(path), *tokenizer), false);
  return parts;
}

// Keeps the documents that have an answer inside the context. Returns a line with counts.
std::string keep_answers(const TrainConfig& config, std::vector<Tokens>& train, const Tokens& validation) {
  const int64_t context = config.sequence_length();
  MaskedCounts counts;
  const auto keep = [&](const Tokens& tokens) {
    const auto [kept, here] = keep_masked(tokens, context);
    counts.all += here.all;
    counts.cut += here.cut;
    counts.left_out += here.left_out;
    return kept;
  };
  for (Tokens& each : train) each = keep(each);
  keep(validation);
  std::string line = counted(counts.all, is_chat(config) ? "conversation" : "document");
  if (counts.cut) line += format_message(", {} cut at {} tokens", {with_commas(counts.cut), context});
  if (counts.left_out) line += format_message(",\n{} left out (no answer in the first {} tokens)", {with_commas(counts.left_out), context});
  return line + "\n";
}

}  // namespace

uint64_t Corpus::hash() const { return hash_of_both(train.hash(), validation.tokens.hash()); }
uint64_t Corpus::former_hash() const { return hash_of_both(train.former_hash(), validation.tokens.former_hash()); }

Corpus open_corpus(const TrainConfig& asked, std::shared_ptr<const Tokenizer> tokenizer) {
  if (asked.data.empty()) fail("data: nothing given");
  TrainConfig config = asked;
  if (!are_shards(asked.data)) config.labels = labels_of(asked);
  Parts parts = open_data(config, tokenizer);
  const Validation validation =
      is_cut(config) ? Validation{join(std::move(parts.validation)), parts.text, parts.from_byte} : open_validation(config, {}, tokenizer);
  std::string note;
  if (has_mask(config)) note += keep_answers(config, parts.train, validation.tokens);
  note += notes_on_tokenizer(config, *tokenizer);
  const Tokens train = join(parts.train);
  return {tokenizer, std::move(parts.train), train, validation, note, config.labels};
}

void check_vocab(const TrainConfig& config, const Tokenizer& tokenizer) {
  const int64_t size = tokenizer.vocab_size(), asked = config.model.vocab;
  const bool can_differ = !find_tokenizer_kind(config.tokenizer) || trains_vocabulary(config);
  if (asked != 0 && (asked < size || (asked > size && !can_differ)))
    fail("model.vocab: {}, but the {} tokenizer has {} tokens; 0 takes its number", {asked, tokenizer.name(), size});
}

Validation open_validation(const TrainConfig& config, const std::vector<std::string>& paths, std::shared_ptr<const Tokenizer> tokenizer) {
  const std::vector<std::string>& files = paths.empty() ? config.validation : paths;
  if (files.empty()) return open_corpus(config, tokenizer).validation;
  TrainConfig whole = config;  // reads these files like the data of a training, but neither cut nor mixed
  whole.data = whole.validation = files;
  whole.weights.clear();
  Parts parts = open_data(whole, tokenizer);
  return {join(std::move(parts.train)), parts.text};
}

}  // namespace ricci::apps
