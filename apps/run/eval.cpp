// ricci-eval: how well trained models predict a text.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

#include "apps/run/corpus.h"
#include "apps/run/evaluation.h"
#include "apps/run/options.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "data/tokenizers/tokenizer.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> runs;
  ModelOptions model;
  std::vector<std::string> data;
  int64_t stride = 0, batch = 32;
  std::optional<int64_t> from;
  bool as_json = false;
};

// Error: an option that an evaluation of this run does not read, or --data where there is nothing else to score.
void check_options(const RunFolder& run, const Options& options) {
  const TrainConfig& config = run.config();
  const bool has_cells = config.model.traits().objective == Objective::next_cell;
  if (is_classifier(config) || has_mask(config))
    for (const auto& [option, is_given] : {std::pair{"--stride", options.stride != 0}, {"--from", options.from.has_value()}})
      if (is_given) fail("{}: {} reads whole {}, not windows", {option, run.path(), is_chat(config) ? "conversations" : "documents"});
  if (has_cells && options.from) fail("--from: {} scores cells, not positions", {run.path()});
  if (has_cells && options.stride)
    fail("--stride: {} scores cells, and would score those where windows overlap several times", {run.path()});
  if (config.data.empty() && config.validation.empty() && options.data.empty())
    fail("--data: {} was imported and has no text of its own; name one to score", {run.path()});
}

ScoredRun score(const std::string& path, const Options& options) {
  const OpenModel opened = open_model(path, options.model);
  const RunFolder& run = opened.run;
  TrainConfig config = run.config();
  config.eval_from = options.from.value_or(config.eval_from);
  const auto [tokens, plain_text, from_byte] = open_validation(config, options.data, run.tokenizer());
  const EvaluationBatches batches =
      evaluation_batches(config, tokens, options.batch, opened.context, options.stride ? options.stride : opened.context);
  Progress progress({.steps = batches.count, .out = stderr});
  const Evaluation result = evaluate(
      opened.model, batches, opened.device, [&](int64_t done) { progress.update(done, done * batches.sequences * opened.context); });
  const bool has_units =
      !result.confusion && config.model.traits().objective != Objective::next_cell && config.eval_from == 0 && result.of_whole_text();
  const std::string kind = run.tokenizer()->name();
  const bool has_line_ends = kind != "word" || run.tokenizer()->eos() == Eos::line;  // as tokens
  return {run.path(), tokens.name(), batches.context, batches.stride, run.context_note(batches.context), result,
      has_units && plain_text ? std::optional(size_of_text(*plain_text, from_byte, has_line_ends)) : std::nullopt,
      kind != "char" && kind != "byte", config.eval_from, config.labels};
}

int evaluate_runs(const Options& options) {
  for (const std::string& path : options.runs) check_options(RunFolder::open(path), options);  // before the first run takes its time
  std::vector<ScoredRun> scored;
  for (const std::string& path : options.runs) scored.push_back(score(path, options));
  print(options.as_json ? json_of(scored) : text_of(scored));
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("run", options.runs, "Runs by their folders or names: runs/quickstart or quickstart")->required();
  app.add_option("--data", options.data, "Files or folders to score; by default each run's validation text");
  app.add_option("--stride", options.stride, "Tokens between windows; fewer than the context, the default, give each token more context")
      ->check(at_least_one);
  app.add_option("--from", options.from, "First position of a window that is scored; by default eval_from of the run")
      ->check(at_least_zero);
  app.add_option("--batch", options.batch, "Windows at a time")->check(at_least_one)->capture_default_str();
  app.add_flag("--json", options.as_json, "Print JSON");
  add_model_options(app, options.model, "Tokens that a window holds");
}

}  // namespace

int main(int argc, char** argv) {
  return run_app<Options>(argc, argv,
      {.name = "ricci-eval",
          .summary = "Measures how well trained models predict a text: nats per token, perplexity, bits per byte.",
          .examples = "ricci-eval quickstart\n"
                      "ricci-eval quickstart other --data book.txt --stride 64 --json"},
      add_options, evaluate_runs);
}
