// ricci tokenize: makes vocabularies, converts texts and conversations to token ids and back, and counts tokens.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <sstream>

#include "apps/run/commands.h"
#include "apps/run/options.h"
#include "apps/run/writer.h"
#include "apps/terminal/streams.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "core/files/file.h"
#include "data/formats/documents.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/kinds.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string from, split = "gpt2", out = "tokenizer.json", eos = "none";
  std::vector<std::string> form = {"chatml"};
  TextOptions text;
  TokenizerRecipe recipe{.name = "bpe"};
  bool keep_all = false, json_lines = false, u16 = false, special = false;
  void (*command)(Options&) = nullptr;
};

std::shared_ptr<const Tokenizer> open(const Options& options) {
  std::vector<Documents> no_texts;
  return options.recipe.name == "byte" ? make_tokenizer(options.recipe, no_texts) : read_tokenizer(options.recipe);
}

const TokenizerKind& kind_of(const Options& options) {
  const TokenizerKind* const kind = options.recipe.kind();
  if (!kind) fail("--kind: expected one of {}, got {}", {list_of_tokenizers(), one_line(options.recipe.name)});
  return *kind;
}

void train(Options& options) {
  const Documents texts = open_documents(options.text);
  TokenizerRecipe& recipe = options.recipe;
  kind_of(options);
  recipe.training.pattern = &find_pattern(options.split);
  const auto given =
      options.from.empty() ? nullptr : with_additions(*open_tokenizer(options.from, recipe.open), {.pieces = recipe.training.special});
  const auto kept = !given || options.keep_all ? given : restrict_to(texts, *given);
  std::vector<Documents> sources{texts};
  const auto tokenizer = kept ? with_eos(kept, recipe.eos, recipe.eos_piece) : make_tokenizer(recipe, sources);
  write_atomically(options.out, tokenizer->to_json());
  print(format_message("{}: {}, {} tokens", {options.out, tokenizer->name(), tokenizer->vocab_size()}));
}

// Calls use(ids, bytes) for each document, or each text of a format with answers, as ricci train reads them.
void for_each_ids(const Documents& documents, const Options& options, const Tokenizer& tokenizer,
    const std::function<void(std::span<const int64_t>, int64_t)>& use) {
  if (traits_of(documents.options.format).has_mask())
    return for_each_text(
        documents, complete_utf8_prefix, [&](const DocumentPiece& piece) { use(tokenizer.encode(piece.text), std::ssize(piece.text)); });
  constexpr int64_t kAtOnce = 4 << 20;  // bytes
  DocumentReader reader(documents, [&](std::string_view text) { return tokenizer.complete_prefix(text); });
  const bool drops = !options.special && tokenizer.marks().first >= 0;
  for (std::vector<DocumentPiece> pieces;; pieces.clear()) {
    int64_t bytes = 0;
    for (DocumentPiece piece; bytes < kAtOnce && reader.next(piece); bytes += std::ssize(pieces.back().text)) pieces.push_back(piece);
    if (pieces.empty()) return;
    auto piece = pieces.begin();
    for (const std::vector<int64_t>& ids : ricci::encode(tokenizer, pieces)) {
      use(std::span(ids).subspan(drops && piece->starts ? 1 : 0), std::ssize(piece->text));
      ++piece;
    }
  }
}

// ---- JSON lines. Other members of a line are ignored.
constexpr JsonLimits kLineLimits = {.bytes = int64_t{1} << 30, .depth = 64, .values = int64_t{1} << 28};

// Returns the token ids of a document. `with_first`: preceded by the token that starts a text.
std::vector<int64_t> ids_of(const Tokenizer& tokenizer, const std::string& text, bool with_first) {
  std::vector<int64_t> ids;
  if (const int64_t first = tokenizer.marks().first; with_first && first >= 0) ids.push_back(first);
  tokenizer.append_ids(text, 0, ids);
  tokenizer.append_end(text, ids);
  return ids;
}

// Converts {"text": "..."} to {"ids": [1, 2, 3]}.
std::string encode_line(const Tokenizer& tokenizer, const std::string& line, bool with_first) {
  const auto text = as<std::string>(member(parse_json(line, "JSON", kLineLimits), "text"));
  if (!text) fail("expected an object with a string \"text\"");
  return to_text({{"ids", ids_of(tokenizer, *text, with_first)}});
}

std::string decode_line(const Tokenizer& tokenizer, const std::string& line) {
  const Json object = parse_json(line, "JSON", kLineLimits);
  const Json& list = member(object, "ids");
  if (!list.is_array()) fail("expected an object with a list \"ids\"");
  std::vector<int64_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_integer()) fail("\"ids\": expected integers, got a different type at index {}", {ids.size()});
    ids.push_back(id.get<int64_t>());
  }
  return to_text({{"text", tokenizer.decode(ids)}}, -1, true);  // in ASCII: some programs read U+2028 as a line end
}

// ---- Commands
// Prints each id followed by a blank, or as two bytes.
void print_ids(std::span<const int64_t> ids, bool u16) {
  std::string text;
  for (const int64_t id : ids) {
    if (!u16) text += std::to_string(id) + " ";
    else text.append({static_cast<char>(id & 0xff), static_cast<char>(id >> 8)});
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void encode(Options& options) {
  const auto tokenizer = open(options);
  if (options.u16 && tokenizer->vocab_size() > 65536)
    fail("--u16: the ids of a vocabulary of {} tokens do not fit into two bytes", {tokenizer->vocab_size()});
  if (options.json_lines) return answer_lines([&](const std::string& line) { return encode_line(*tokenizer, line, options.special); });
  if (options.text.paths.empty()) {
    print_ids(ids_of(*tokenizer, read_decoded("-", encoding_of(options.text)), options.special), options.u16);
  } else {
    const Documents documents = open_documents(options.text);
    const FormatTraits& format = traits_of(documents.options.format);
    if (format.has_mask())
      fail("--format: {}", {format.has_template ? "the command chat encodes messages" : "ricci prepare encodes pairs with their answers"});
    for_each_ids(documents, options, *tokenizer, [&](std::span<const int64_t> ids, int64_t) { print_ids(ids, options.u16); });
  }
  if (!options.u16) std::puts("");
}

// Parses ids separated by white space.
std::vector<int64_t> parse_ids(const std::string& text) {
  std::vector<int64_t> ids;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const char* const end = word.data() + word.size();
    const auto [next, error] = std::from_chars(word.data(), end, ids.emplace_back());
    if (error != std::errc() || next != end) fail("expected ids separated by blanks, got '{}'", {one_line(word, 20)});
  }
  return ids;
}

void decode(Options& options) {
  const auto tokenizer = open(options);
  if (options.json_lines) return answer_lines([&](const std::string& line) { return decode_line(*tokenizer, line); });
  const std::string text = for_stdout(tokenizer->decode(parse_ids(read_stdin())));
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Converts {"messages": [...]} to {"ids": [1, 2, 3], "answers": [0, 1, 1]}, with 1 for scored tokens.
void chat(Options& options) {
  const ChatEncoder encoder(open(options), chat_template(options.form));
  answer_lines([&](const std::string& line) {
    const auto [ids, counts] = encoder.encode(line);
    return to_text({{"ids", ids}, {"answers", std::vector<int>(counts.begin(), counts.end())}});
  });
}

void count(Options& options) {
  const auto tokenizer = open(options);
  int64_t tokens = 0, bytes = 0;
  const Documents documents = open_documents(options.text);
  for_each_ids(documents, options, *tokenizer, [&](std::span<const int64_t> ids, int64_t more_bytes) {
    tokens += static_cast<int64_t>(ids.size());
    bytes += more_bytes;
  });
  print(format_message("{}: {} tokens, {} bytes, {:.3f} bytes per token",
      {documents.files.name(), tokens, bytes, static_cast<double>(bytes) / static_cast<double>(tokens)}));
}

void add_common(CLI::App& app, Options& options) {
  app.add_flag(
      "--lowercase", options.recipe.open.lowercase, "Convert texts to lower case without accents, for the vocab.txt of an uncased model");
  CLI::Option* const eos = app.add_option("--eos", options.eos, "Unit that ends with <eos>: none, line or document")->capture_default_str();
  app.add_option("--eos-piece", options.recipe.eos_piece, "Text of <eos>; by default <eos>, or after documents the tokenizer's own")
      ->needs(eos);
  add_threads_option(app);
}

void add_train(CLI::App& app, Options& options) {
  app.add_option("texts", options.text.paths, "Files, folders and tar archives, plain or compressed, of one format")->required();
  add_text_options(app, options.text, false);
  app.add_option("-o,--output,--out", options.out, "Tokenizer file to write")->capture_default_str();
  app.add_option("--kind", options.recipe.name, list_of_tokenizers())->capture_default_str();
  app.add_option("--vocab", options.recipe.training.vocab, "Vocabulary size; 0 keeps all words")
      ->check(at_least_zero)
      ->capture_default_str();
  app.add_option("--min-count", options.recipe.training.min_count, "Minimum count of words and pairs that become tokens")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--special", options.recipe.training.special, "A text that is always one token; repeatable")->allow_extra_args(false);
  app.add_option("--split", options.split, "How BPE divides texts into words: gpt2, llama3, qwen2, smollm")->capture_default_str();
  CLI::Option* const from =
      app.add_option("--from", options.from, "Keep only the tokens of this tokenizer that the texts need, without training");
  for (const char* option : {"--kind", "--vocab", "--min-count", "--split"}) from->excludes(app.get_option(option));
  app.add_flag("--keep-all", options.keep_all, "Also keep the tokens that the texts do not need")->needs(from);
  add_common(app, options);
  app.get_option("--lowercase")->needs(from);
}

// Throws Error if an option does not apply to this kind of vocabulary.
void check_training_options(const CLI::App& app, const Options& options) {
  if (!options.from.empty()) return;
  const TokenizerKind& kind = kind_of(options);
  for (const char* option : {"vocab", "min-count", "special", "split"})
    if (app.count(std::string("--") + option) && !reads_option(kind, option))
      fail("--{}: does not apply to --kind {}, only to {}", {option, kind.name, list_of_tokenizers(option)});
}

void add_options(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  CLI::App* const training = app.add_subcommand("train", "Make a vocabulary from texts");
  add_train(*training, options);
  training->callback([&options, training] {
    check_training_options(*training, options);
    options.command = train;
  });
  const auto add = [&](const char* name, const char* help, void (*command)(Options&)) {
    CLI::App* const added = app.add_subcommand(name, help);
    added->callback([&options, command] { options.command = command; });
    return added;
  };
  CLI::App* const encoding = add("encode", "Convert texts, or stdin, to ids on stdout", encode);
  CLI::Option* const texts =
      encoding->add_option("texts", options.text.paths, "Files or folders, as for `train`; by default a text on stdin");
  CLI::Option* const u16 = encoding->add_flag("--u16", options.u16, "Write each id as two bytes, the lower byte first");
  encoding->add_flag("--special", options.special, "Begin with the token that the tokenizer puts before each text");
  encoding->add_flag("--jsonl", options.json_lines, "Convert lines {\"text\": ...} on stdin to lines {\"ids\": [...]}")
      ->excludes(u16)
      ->excludes(texts);
  CLI::App* const decoding = add("decode", "Convert ids on stdin to text on stdout", decode);
  decoding->add_flag("--jsonl", options.json_lines, "Convert lines {\"ids\": [...]} on stdin to lines {\"text\": ...}");
  CLI::App* const talking = add("chat", "Convert lines {\"messages\": [...]} on stdin to ids, with 1 for each scored id", chat);
  keep_brackets(talking->add_option("--template", options.form, "Chat template: chatml (default), llama3, or six strings as in `chat`"));
  CLI::App* const counting = add("count", "Count the tokens of texts", count);
  counting->add_option("texts", options.text.paths, "Files or folders, as for `train`")->required();
  for (CLI::App* each : {encoding, counting}) add_text_options(*each, options.text, false);
  for (CLI::App* each : {encoding, decoding, talking, counting}) {
    each->add_option("--tokenizer", options.recipe.name, "byte, or a tokenizer.json, vocab.bpe, merges.txt or vocab.txt, or its folder")
        ->required();
    add_common(*each, options);
  }
}

int run(Options& options) {
  options.recipe.eos = choice_of<Eos>("--eos", options.eos);
  options.text.documents.label_field.clear();  // labels are ignored
  options.text.documents.keep_line_ends = options.recipe.eos != Eos::document;
  options.command(options);
  return 0;
}

}  // namespace

const Command ricci::apps::tokenize_command{{.name = "ricci tokenize",
                                                .summary = "Makes vocabularies, turns texts into token ids and back, counts tokens.",
                                                .examples = "ricci tokenize train book.txt --kind bpe --vocab 4000 -o tokenizer.json\n"
                                                            "ricci tokenize count book.txt --tokenizer tokenizer.json"},
    with_options<Options, add_options, run>};
