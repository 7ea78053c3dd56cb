// ricci prepare: turns a corpus into token shards. ricci train maps them into memory, so a corpus can be larger than the memory.
#include "data/shards/prepare.h"

#include <CLI/CLI.hpp>

#include "apps/run/commands.h"
#include "apps/run/options.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/id_reader.h"
#include "data/tokenizers/kinds.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  TextOptions text;
  std::string output, tokenizer = "char", eos, eos_piece;
  int64_t shard_tokens = PrepareOptions().shard_tokens;
  bool is_ids = false;  // the files contain token ids of two bytes each
};

// Opens the tokenizer, with the requested end token of lines or documents, else as in existing shards, else the tokenizer's own end token
// between documents.
std::shared_ptr<const Tokenizer> tokenizer_for(const Options& options, Documents& documents) {
  DocumentOptions& asked = documents.options;
  const FormatTraits& format = traits_of(asked.format);
  const bool is_char = options.tokenizer == "char", is_made = is_char || options.tokenizer == "byte";
  if (options.is_ids && is_char) fail("--format u16: requires --tokenizer FILE, the tokenizer that made the ids");
  if (format.has_template && is_char) fail("--tokenizer: format {} requires a tokenizer file with chat markers", {format.name});
  TokenizerRecipe recipe{.name = options.tokenizer, .eos_is_default = true, .eos_piece = options.eos_piece};
  if (!is_made) recipe.name = find_data(options.tokenizer, "--tokenizer").string();
  const bool has_ends = !options.is_ids && !format.has_template,
             is_one = format.is_text() && asked.documents == DocumentOptions().documents;
  if (has_ends && (!options.eos.empty() || has_tokenizer(options.output))) {
    recipe.eos = options.eos.empty() ? tokenizer_of_shards(options.output)->eos() : choice_of<Eos>("--eos", options.eos);
    recipe.eos_is_default = false;
  } else if (has_ends && asked.classes == 0 && !is_one) {
    recipe.eos = Eos::document;
  }
  asked.keep_line_ends = recipe.eos != Eos::document;
  std::vector<Documents> sources{documents};
  const auto tokenizer = is_made ? make_tokenizer(recipe, sources) : read_tokenizer(recipe);
  asked.keep_line_ends = recipe.eos != Eos::document || tokenizer->eos() != Eos::document;
  if (options.is_ids && tokenizer->vocab_size() > 65536)
    fail("--format u16: the ids of a vocabulary of {} tokens do not fit into two bytes", {tokenizer->vocab_size()});
  if (recipe.eos == Eos::document && tokenizer->eos() == Eos::none)
    print(format_message("nothing separates the documents: the {} tokenizer has no end-of-text token;\n{}",
        {tokenizer->name(), options.tokenizer == "byte" ? "--tokenizer char gets one" : "--eos document adds <eos>"}));
  return options.is_ids ? make_id_reader(tokenizer) : tokenizer;
}

int prepare(Options options) {
  DocumentOptions& asked = options.text.documents;
  if (!asked.labels.empty()) asked.classes = std::ssize(asked.labels);
  options.is_ids = options.text.format == "u16";
  for (const auto& [option, is_given] : {std::pair{"documents", asked.documents != DocumentOptions().documents},
           {"eos", !options.eos.empty()}, {"encoding", !options.text.encoding.empty()}})
    if (options.is_ids && is_given) fail("--{}: applies only to texts; --format u16 reads each file as a document of token ids", {option});
  if (options.is_ids) options.text.format = kPlainText.name;
  if (options.is_ids) options.text.encoding = name_of(Encoding::bytes);
  Documents documents = open_documents(options.text);
  const FormatTraits& format = traits_of(documents.options.format);
  if (format.has_template && !options.eos.empty())
    fail("--eos: does not apply to format {}; the chat template has its own end tokens", {format.name});
  if (!format.has_template && !asked.chat.empty()) fail("--chat: applies only to messages, not to format {}", {format.name});
  if (format.has_template && asked.chat.empty()) documents.options.chat = {"chatml"};
  const auto tokenizer = tokenizer_for(options, documents);
  make_folders(options.output);

  Prepared made;
  {
    Progress progress({.steps = documents.files.bytes_on_disk() / kMebibyte, .unit = "MiB", .out = stderr});
    const auto update = [&](const PrepareProgress& now) { progress.update(now.bytes_of_files / kMebibyte, now.tokens); };
    const uint64_t source_hash = hash_inputs(documents, *tokenizer, options.shard_tokens);
    made = prepare_shards(
        documents, tokenizer, options.output, {.shard_tokens = options.shard_tokens, .source_hash = source_hash, .progress = update});
  }
  const std::string found = made.found ? "; found " + counted(made.found, "shard") : "";
  print(format_message("{}: {} of {} in {}\nvocabulary {}, {:.3f} bytes per token{}",
      {options.output, counted(made.tokens, "token"), counted(made.documents, "document"), counted(made.shards, "shard"),
          with_commas(tokenizer->vocab_size()), static_cast<double>(made.text_bytes) / static_cast<double>(made.tokens), found}));
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  DocumentOptions& documents = options.text.documents;
  app.add_option("inputs", options.text.paths, "Files, folders and tar archives, plain or compressed, of one format")->required();
  app.add_option("-o,--output", options.output, "Output folder. Run the same command again to resume after an interruption")->required();
  app.add_option("--tokenizer", options.tokenizer, "Tokenizer: char, byte or a file, such as from ricci tokenize")->capture_default_str();
  CLI::Option* const eos = app.add_option("--eos", options.eos,
      "Put an end token after each line or document: " + list_of<Eos>() +
          "; by default document, but none if each file is a document or documents have labels");
  app.add_option("--eos-piece", options.eos_piece, "The end token; by default the tokenizer's own, or <eos>")->needs(eos);
  add_text_options(app, options.text, false);
  app.add_option("--chat", documents.chat, "Chat template: chatml (default), llama3, or six strings as for the key `chat`");
  CLI::Option* const format = app.get_option("--format");
  format->description(format->get_description() + "; u16: ids of two bytes, such as nanoGPT's train.bin");
  CLI::Option* const classes =
      app.add_option("--classes", documents.classes, "Number of classes; labels are 0 .. N-1")->check(at_least_one);
  app.add_option("--labels", documents.labels, "Names of the classes, if labels are words, such as negative,positive")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(classes);
  app.add_option("--shard-tokens", options.shard_tokens, "Tokens per shard")->check(at_least_one)->capture_default_str();
  add_threads_option(app);
}

}  // namespace

const Command ricci::apps::prepare_command{{.name = "ricci prepare",
                                               .summary = "Turns a corpus into shards of tokens for ricci train.",
                                               .examples = "ricci prepare corpus/ more.tar.gz --output prepared --tokenizer byte\n"
                                                           "ricci prepare reviews.tsv -o reviews --format tsv --label-field 1 --classes 2"},
    with_options<Options, add_options, prepare>};
