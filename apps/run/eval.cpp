// ricci eval: how well trained models predict a text, or choose answers (choices.h). If runs have different tokenizers, only bits per byte
// and word perplexity are comparable.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "apps/run/batches.h"
#include "apps/run/choices.h"
#include "apps/run/commands.h"
#include "apps/run/options.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "core/json.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> runs;
  ModelOptions model;
  TextOptions text;
  std::string choices;  // a file of questions
  int64_t stride = 0, batch = 32;
  std::optional<int64_t> from;
  bool with_words = false, as_json = false;
};

struct ScoredRun {
  NamedWeights run;
  std::string text;                 // the text's name
  int64_t context = 0, stride = 0;  // stride: tokens between window starts; 0 without windows
  std::string context_note;         // RunFolder::context_note
  Evaluation result;
  double unknown = 0;                     // unknown_share
  std::optional<TextSize> size;           // if all of a plain text was scored and no word is unknown
  bool with_words = false;                // Options::with_words
  int64_t from = 0;                       // the first position scored in a window
  std::vector<std::string> classes = {};  // a classifier's class names, if any
};

// Throws Error if an option does not apply to this run, or the run has no text to score.
void check_options(const RunFolder& run, const Options& options) {
  const TrainConfig config = with_text(run.config(), options.text);
  const bool has_cells = config.model.traits().objective == Objective::next_cell;
  if (is_classifier(config) || has_mask(config))
    for (const auto& [option, is_given] : {std::pair{"--stride", options.stride != 0}, {"--from", options.from.has_value()}})
      if (is_given)
        fail("{}: {} scores {} separately, not in windows", {option, run.path(), is_chat(config) ? "conversations" : "documents"});
  if (!options.choices.empty() && !config.model.traits().writes_text())
    fail("--choices: {} gives no probability of the next token (model.family: {})", {run.path(), name_of(config.model.family)});
  if (has_cells && options.from) fail("--from: {} scores cells, not positions", {run.path()});
  if (has_cells && options.stride) fail("--stride: {} scores cells, but overlapping windows would score them twice", {run.path()});
  if (config.data.empty() && config.validation.empty() && options.choices.empty())
    fail("--data: {} was imported and has no validation text; name a text to score", {run.path()});
}

ScoredRun score(const std::string& path, const Options& options) {
  const OpenModel opened = open_model(path, options.model);
  const RunFolder& run = opened.run;
  TrainConfig config = with_text(run.config(), options.text);
  config.eval_from = options.from.value_or(config.eval_from);
  config.labels = run.labels();
  const auto [tokens, plain_text, from_byte, answers] = open_validation(config, run.tokenizer(), opened.context);
  const int64_t stride = options.stride ? options.stride : opened.context;
  const EvaluationBatches batches = evaluation_batches(config, tokens, options.batch, opened.context, stride);
  Progress progress({.steps = batches.batches(), .out = stderr});
  const Evaluation result =
      evaluate(opened.model, batches, opened.device, [&](int64_t done) { progress.update(done, done * batches.batch() * opened.context); });
  const bool is_whole =
      !result.confusion && config.model.traits().objective != Objective::next_cell && config.eval_from == 0 && result.of_whole_text();
  const double unknown = result.confusion ? 0 : unknown_share(batches, *run.tokenizer());
  return {run.weights(), tokens.name(), batches.context(), batches.stride(), run.context_note(batches.context()), result, unknown,
      is_whole && plain_text && unknown == 0 ? std::optional(size_of_text(*plain_text, from_byte)) : std::nullopt, options.with_words,
      config.eval_from, config.labels};
}

// ---- Reports
ResultTable make_table(std::span<const ScoredRun> scored) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), scored, value); };
  // These values are empty for runs without `predictions` or `size`.
  const auto predicted = [&](const char* key, const auto& value) {
    add({.key = key}, [&](const ScoredRun& s) { return s.result.predictions ? Json(value(*s.result.predictions)) : Json(); });
  };
  const auto sized = [&](Column column, const auto& value) {
    add(std::move(column), [&](const ScoredRun& s) { return s.size ? Json(value(s)) : Json(); });
  };
  const auto any = [&](const auto& is) { return std::any_of(scored.begin(), scored.end(), is); };
  add({.heading = "run", .left = true}, [](const ScoredRun& s) { return s.run.label(); });
  add({.key = "run"}, [](const ScoredRun& s) { return s.run.text(); });
  add({.key = "text"}, &ScoredRun::text);
  add({.heading = "tokens", .key = "tokens", .format = ","}, [](const ScoredRun& s) { return s.result.tokens; });
  add({.heading = "context", .key = "context"}, &ScoredRun::context);
  const bool overlap = any([](const ScoredRun& s) { return s.stride > 0 && s.stride < s.context; });
  add({.heading = overlap ? "stride" : "", .key = "stride"}, [](const ScoredRun& s) { return s.stride ? Json(s.stride) : Json(); });
  add({.key = "from"}, [](const ScoredRun& s) { return s.from ? Json(s.from) : Json(); });
  add({.heading = "nats", .key = "nats_per_token", .format = "{:.4f}"}, [](const ScoredRun& s) { return s.result.nats_per_token; });
  add({.heading = "perplexity", .key = "perplexity", .format = "{:.3f}"}, [](const ScoredRun& s) { return s.result.perplexity(); });
  const auto has_unknown = [](const ScoredRun& s) { return s.unknown > 0; };
  add({.heading = any(has_unknown) ? "<unk>" : "", .key = "unknown_share", .format = "{:.1f}%", .factor = 100, .missing = ""},
      [&](const ScoredRun& s) { return has_unknown(s) ? Json(s.unknown) : Json(); });
  predicted("token_accuracy", [](const Predictions& p) { return p.token_accuracy(); });
  predicted("sequence_accuracy", [](const Predictions& p) { return p.sequence_accuracy(); });
  sized({.key = "bytes"}, [](const ScoredRun& s) { return s.size->bytes; });
  sized({.heading = "bits/byte", .key = "bits_per_byte", .format = "{:.4f}"},
      [](const ScoredRun& s) { return s.result.bits_per_byte(s.size->bytes); });
  if (!scored.empty() && !scored[0].with_words) return table;
  sized({.key = "words"}, [](const ScoredRun& s) { return s.size->words; });
  sized({.heading = "per word", .key = "word_perplexity", .format = "{:.2f}"},
      [](const ScoredRun& s) { return s.result.word_perplexity(s.size->words); });
  return table;
}

// Returns a row for each class: how often each class was predicted for its documents. Empty if a row is too long for a terminal.
std::string confusion_text(const ScoredRun& scored) {
  constexpr size_t kColumns = 80;
  if (!scored.result.confusion || scored.result.confusion->classes() > static_cast<int64_t>(kColumns)) return "";
  const Confusion& confusion = *scored.result.confusion;
  const auto name = [&](int64_t k) {
    return scored.classes.empty() ? std::to_string(k) : one_line(scored.classes[static_cast<size_t>(k)]);
  };
  ResultTable table{{{.heading = "documents of class", .left = true}}};
  for (int64_t k = 0; k < confusion.classes(); ++k) table.columns.push_back({.heading = "as " + name(k)});
  for (const char* const heading : {"precision", "recall"}) table.columns.push_back({.heading = heading, .format = "{:.4f}"});
  for (int64_t target = 0; target < confusion.classes(); ++target) {
    std::vector<Json> row{Json(name(target))};
    for (int64_t predicted = 0; predicted < confusion.classes(); ++predicted) row.emplace_back(confusion.count(target, predicted));
    const ClassScores scores = confusion.scores(target);
    row.insert(row.end(), {Json(scores.precision), Json(scores.recall)});
    table.add_row(row);
  }
  const std::string text = text_of(table);
  return text.find('\n') > kColumns ? "" : "\n" + text;
}

std::string describe(const ScoredRun& s) {
  const Evaluation& result = s.result;
  std::string text = format_message(
      "{}: {}, context {}{}", {s.text, counted(result.tokens, result.confusion ? "document" : "token"), s.context, s.context_note});
  if (result.confusion)
    return text + format_message("\n{:.4f} nats per document, accuracy {:.4f}, macro F1 {:.4f}",
                      {result.nats_per_token, result.confusion->accuracy(), result.confusion->macro().f1});
  if (s.stride) text += format_message(", stride {}", {s.stride});
  if (s.from) text += format_message(", from position {}", {s.from});
  text += format_message("\n{:.4f} nats per token, perplexity {}{}",
      {result.nats_per_token, show_number("{:.3f}", result.perplexity()), unknown_note(s.unknown)});
  if (result.predictions) text += "\n" + predictions_note(*result.predictions);
  if (s.unknown > 0) text += "\nno bits per byte: <unk> replaces words outside the vocabulary";
  if (!s.size) return text;
  text += format_message(", {:.4f} bits per byte", {result.bits_per_byte(s.size->bytes)});
  if (!s.with_words) return text;
  return text + format_message("\n{}, word perplexity {}",
                    {counted(s.size->words, "word"), show_number("{:.2f}", result.word_perplexity(s.size->words))});
}

// A table for each text with a row per run, then the lines of each classifier.
std::string compare(const std::vector<ScoredRun>& scored) {
  std::map<std::string, std::vector<ScoredRun>> by_text;
  std::string text, classifiers;
  for (const ScoredRun& each : scored) {
    if (each.result.confusion) classifiers += each.run.label() + ", " + describe(each) + confusion_text(each) + "\n";
    else by_text[each.text].push_back(each);
  }
  for (const auto& [name, runs] : by_text) text += name + ":\n" + text_of(make_table(runs)) + "\n";
  text += classifiers;
  text.pop_back();
  return text;
}

// A classifier's mean loss, accuracy, macro precision, recall and F1, and its confusion matrix.
Json scores_of(const Evaluation& classes) {
  const Confusion& confusion = *classes.confusion;
  const ClassScores macro = confusion.macro();
  Json counts = Json::array();
  for (int64_t target = 0; target < confusion.classes(); ++target) {
    Json& row = counts.emplace_back(Json::array());
    for (int64_t predicted = 0; predicted < confusion.classes(); ++predicted) row.push_back(confusion.count(target, predicted));
  }
  return {{"sequences", confusion.total()}, {"nats_per_sequence", classes.nats_per_token}, {"accuracy", confusion.accuracy()},
      {"macro_precision", macro.precision}, {"macro_recall", macro.recall}, {"macro_f1", macro.f1}, {"confusion", counts}};
}

// A list with an object per run, classifiers last. A number that is not finite is null.
std::string to_json(std::vector<ScoredRun> scored) {
  const auto end = std::stable_partition(scored.begin(), scored.end(), [](const ScoredRun& each) { return !each.result.confusion; });
  Json all = json_of(make_table({scored.begin(), end}));
  for (const ScoredRun& each : std::span(end, scored.end())) {
    Json& run = all.emplace_back(Json{{"run", each.run.text()}, {"text", each.text}, {"context", each.context}});
    if (!each.classes.empty()) run["classes"] = each.classes;
    run.update(scores_of(each.result));
  }
  return to_text(all, 1);
}

int evaluate_runs(const Options& options) {
  for (const std::string& path : options.runs) check_options(RunFolder::open(path), options);
  if (!options.choices.empty()) {
    print(evaluate_choices(options.choices, options.runs, options.model, options.batch, options.as_json));
    return 0;
  }
  std::vector<ScoredRun> scored;
  for (const std::string& path : options.runs) scored.push_back(score(path, options));
  if (options.as_json) print(to_json(scored));
  else print(scored.size() == 1 ? describe(scored[0]) + confusion_text(scored[0]) : compare(scored));
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("run", options.runs, kWeightsHelp)->required();
  app.add_option("--data", options.text.paths, "Files or folders to score; by default each run's validation text");
  add_text_options(app, options.text, true);
  app.add_option(
         "--stride", options.stride, "Tokens between window starts (default: the context); smaller values give each token more context")
      ->check(at_least_one);
  app.add_option("--from", options.from, "First scored position in each window; by default the run's eval_from")->check(at_least_zero);
  app.add_option("--batch", options.batch, "Windows per batch")->check(at_least_one)->capture_default_str();
  app.add_flag("--words", options.with_words, "Also print the perplexity per word (lm-eval's words, separated by white space)");
  CLI::Option* const choices = app.add_option("--choices", options.choices,
      "Score the questions of a JSONL file, with the fields of HellaSwag, ARC or PIQA, or the fields context, choices and answer");
  for (const char* other : {"--data", "--format", "--encoding", "--text-field", "--label-field", "--stride", "--from", "--words"})
    choices->excludes(app.get_option(other));
  app.add_flag("--json", options.as_json, "Print JSON");
  add_model_options(app, options.model, "Tokens of a window");
}

}  // namespace

const Command ricci::apps::eval_command{
    {.name = "ricci eval",
        .summary = "Measures how well trained models predict a text: nats per token, perplexity, bits per byte.",
        .examples = "ricci eval quickstart other --data book.txt --stride 64 --json\n"
                    "ricci eval gpt2 --choices hellaswag_val.jsonl"},
    with_options<Options, add_options, evaluate_runs>};
