#include "apps/run/corpus.h"

#include <cstdio>

#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "cuda/ranks/ranks.h"
#include "data/tokenizers/kinds.h"

// The assembler includes the file that CMake extracts from embedded.tar.gz.
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

DocumentOptions options_of(const TrainConfig& config) {
  DocumentOptions options{.format = config.format, .text_field = config.text_field, .label_field = config.label_field, .chat = config.chat};
  options.chosen_by = named_format(config).file;
  if (!is_classifier(config) || traits_of(config.format).is_text()) return options;
  options.classes = config.model.settings<Classifier>().classes;
  options.labels = config.labels;
  return options;
}

TokenizerRecipe recipe_of(const TrainConfig& config) {
  const FormatTraits& format = traits_of(config.format);
  return {.name = config.tokenizer,
      .training = {.vocab = config.model.vocab},
      .eos = config.eos,
      .eos_is_default = follows_tokenizer_eos(config),
      .has_line_end = format.is_documents() && !format.is_text()};
}

Sources sources_of(const TrainConfig& config, const std::vector<std::string>& paths, const DocumentOptions& options, bool is_mixed) {
  const BuiltInText built_in[] = {{"embedded", embedded_corpus()}};
  return find_sources(paths, options, config.encoding, built_in, is_mixed);
}

void warn(const std::string& line) {
  if (find_launcher().rank == 0) std::fprintf(stderr, "warning: %s\n", line.c_str());  // all ranks read the same files
}

// True if the tokenizer is made from the text, with the config's vocabulary size.
bool trains_vocabulary(const TrainConfig& config) {
  const TokenizerKind* const kind = find_tokenizer_kind(config.tokenizer);
  return kind && reads_option(*kind, "vocab");
}

void check_tokens(const TrainConfig& config, const Tokens& tokens) {
  const int64_t classes = is_classifier(config) ? config.model.settings<Classifier>().classes : INT64_MAX;
  if (is_classifier(config) && tokens.classes() == 0)
    fail("data: {} has no labels, but model.family=classifier learns from labels; format={} with label_field reads labels, and so does "
         "ricci prepare",
        {tokens.name(), list_of_formats(&FormatTraits::has_fields, " or ")});
  if (tokens.classes() > classes)
    fail("data: {} has labels of {} classes, but model.classes is {}", {tokens.name(), tokens.classes(), classes});
  if (tokens.has_mask() == has_mask(config)) return;
  if (has_mask(config))
    fail("format: {0}, but {1} has no answers; ricci prepare --format {0} makes shards with answers",
        {name_of(config.format), tokens.name()});
  fail("format: {}, but only the answers in {} are scored; expected {}",
      {name_of(config.format), tokens.name(), list_of_formats(&FormatTraits::has_mask, " or ")});
}

}  // namespace

CorpusRequest request_of(const TrainConfig& config, std::shared_ptr<const Tokenizer> known) {
  if (config.data.empty()) fail("data: is not set");
  DocumentOptions options = options_of(config);
  const Sources joined = sources_of(config, config.data, options, false);
  std::vector<std::string> labels;
  if (is_classifier(config)) labels = find_labels(joined, config.labels);
  if (options.classes > 0) options.labels = labels;
  CorpusRequest request{.data = config.weights.empty() ? joined : sources_of(config, config.data, options, true),
      .labels = labels,
      .context = config.sequence_length(),
      .warn = warn,
      .check = [config](const Tokens& source) { check_tokens(config, source); }};
  for (Documents& text : request.data.texts) text.options.labels = options.labels;
  if (config.validation.empty()) request.train_fraction = config.train_fraction;
  else request.validation = sources_of(config, config.validation, options, false);
  for (const Documents& text : request.data.texts)
    if (const std::string note = note_on(text, config.given.contains("format")); !note.empty()) warn(note);
  const bool reads_text = has_mask(config) || !request.validation.texts.empty() || !request.data.texts.empty();
  if (!traits_of(config.format).is_text() && !reads_text)
    fail("format: {}, but {} already contains tokens; set --format in ricci prepare", {name_of(config.format), request.data.shards[0]});
  request.tokenizer = known ? std::move(known) : choose_tokenizer(recipe_of(config), request.data, request.train_fraction);
  return request;
}

Corpus open_corpus(const TrainConfig& config, std::shared_ptr<const Tokenizer> known) {
  return open_corpus(request_of(config, std::move(known)));
}

std::string describe_corpus(const TrainConfig& config, const Corpus& corpus) {
  const Tokenizer& tokenizer = *corpus.tokenizer;
  const int64_t context = config.sequence_length();
  const auto [all, cut, left_out] = corpus.answers;
  std::string text;
  if (all) text = counted(all, is_chat(config) ? "conversation" : "document");
  if (cut) text += format_message(", {} cut at {} tokens", {with_commas(cut), context});
  if (left_out) text += format_message(",\n{} left out (no answer in the first {} tokens)", {with_commas(left_out), context});
  if (all) text += "\n";
  if (trains_vocabulary(config) && config.model.vocab > tokenizer.vocab_size())
    text += format_message("model.vocab: {} instead of {}: this text has no more tokens for {}\n",
        {with_commas(tokenizer.vocab_size()), with_commas(config.model.vocab), config.tokenizer});
  if (ends_documents(config) && config.eos == Eos::document && tokenizer.eos() == Eos::none)
    text += format_message("nothing separates the documents: the {} tokenizer has no end-of-text token;\n{}\n",
        {tokenizer.name(), config.tokenizer != "byte" ? "eos=document adds <eos>" : "tokenizer=char gets one"});
  return text;
}

Validation open_validation(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer, int64_t context) {
  CorpusRequest request{.labels = config.labels, .warn = warn, .check = [config](const Tokens& source) { check_tokens(config, source); }};
  if (config.validation.empty()) request = request_of(config, tokenizer);
  else request.validation = sources_of(config, config.validation, options_of(config), false);
  request.tokenizer = std::move(tokenizer);
  request.context = context;
  return open_validation(request);
}

void check_vocab(const TrainConfig& config, const Tokenizer& tokenizer) {
  const int64_t size = tokenizer.vocab_size(), asked = config.model.vocab;
  const bool can_differ = !find_tokenizer_kind(config.tokenizer) || trains_vocabulary(config);
  if (asked != 0 && (asked < size || (asked > size && !can_differ)))
    fail("model.vocab: {}, but the {} tokenizer has {} tokens; model.vocab=0 uses them all", {asked, tokenizer.name(), size});
}

}  // namespace ricci::apps
