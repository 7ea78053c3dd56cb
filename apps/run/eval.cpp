// ricci-eval: how well trained models predict a text.
//   ricci-eval runs/NAME --stride 256
//   ricci-eval runs/A runs/B --data wiki.test.tokens --json
#include <cstdio>
#include <optional>
#include <variant>

#include "apps/run/corpus/corpus.h"
#include "apps/run/corpus/micro_batches.h"
#include "apps/run/evaluation/scored_run.h"
#include "apps/terminal/model_options.h"
#include "apps/terminal/progress.h"
#include "core/error.h"

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

// What is evaluated: a run, its tokens and how they are read.
struct Scoring {
  OpenModel opened;
  Tokens tokens;
  int64_t stride;
  EvaluationBatches batches;

  Scoring(const std::string& path, const Options& options)
      : opened(open_model(path, options.model)),
        tokens(tokens_for(opened.run, options)),
        stride(options.stride ? options.stride : opened.context),
        batches(evaluation_batches(scored_by(opened.run.config(), options), tokens, options.batch, opened.context, stride)) {}

  static Tokens tokens_for(const RunFolder& run, const Options& options) {
    return options.data.empty() ? open_validation(run.config(), run.tokenizer()) : open_tokens(run.config(), options.data, run.tokenizer());
  }
  static TrainConfig scored_by(TrainConfig config, const Options& options) {
    config.eval_from = options.from.value_or(config.eval_from);
    return config;
  }
  // Calls evaluate(count, batch, after_batch) with a line that tells how far it is.
  template <class Evaluate> auto with_progress(const Evaluate& evaluate) const {
    Progress progress({.steps = count_of(batches), .out = stderr});
    const int64_t rows = std::visit([](const auto& each) { return each.batch(); }, batches);
    return evaluate(
        count_of(batches), [&](int64_t i) { return batch_at(batches, i, opened.device); },
        [&](int64_t done) { progress.update(done, done * rows * opened.context); });
  }
};

ScoredRun score(const Scoring& s, const Options& options) {
  const Evaluation result = s.with_progress([&](auto... how) { return evaluate(s.opened.model, s.batches, how...); });
  const int64_t from = options.from.value_or(s.opened.run.config().eval_from);
  const bool of_whole_text = s.opened.run.config().model.traits().objective != Objective::next_cell && from == 0 && result.of_whole_text();
  const std::optional<TextSource> text =
      of_whole_text ? text_of(s.opened.run.config(), options.data, s.opened.run.tokenizer()) : std::nullopt;
  const bool has_windows = std::holds_alternative<Windows>(s.batches);
  const int64_t context = has_windows ? std::get<Windows>(s.batches).context() : s.opened.context;
  return {s.opened.run.path(), s.tokens.name(), context, has_windows ? std::optional(std::min(s.stride, context)) : std::nullopt,
      s.opened.run.context_note(context), result, text ? std::optional(size_of_text(*text)) : std::nullopt, from};
}

ScoredClassifier score_classifier(const Scoring& s) {
  const ClassEvaluation result = s.with_progress([&](auto... how) { return evaluate_classes(s.opened.model, how...); });
  return {s.opened.run.path(), s.tokens.name(), s.opened.context, s.opened.run.context_note(s.opened.context), result};
}

// Error: an option that an evaluation of this run does not read, or --data where there is nothing else to score.
void check_options(const RunFolder& run, const Options& options) {
  const TrainConfig& config = run.config();
  const bool reads_windows = !is_classifier(config) && !is_sorting(config);
  if (!reads_windows && options.stride)
    fail("--stride: {} reads whole {}, not windows", {run.path(), is_sorting(config) ? "rows" : "documents"});
  if (!reads_windows && options.from)
    fail("--from: {} reads whole {}, not windows", {run.path(), is_sorting(config) ? "rows" : "documents"});
  if (config.model.traits().objective == Objective::next_cell && options.from) fail("--from: {} scores cells, not positions", {run.path()});
  if (config.model.traits().objective == Objective::next_cell && options.stride)
    fail("--stride: {} scores cells, and would score those where windows overlap several times", {run.path()});
  if (is_sorting(config) && options.model.context) fail("--context: {} reads whole rows of {} tokens", {run.path(), *config.context});
  if (is_sorting(config) && !options.data.empty())
    fail("--data: {} sorts, and is scored on the generated rows that its training left out", {run.path()});
  if (config.data.empty() && config.validation.empty() && options.data.empty())
    fail("--data: {} was imported and has no text of its own; name one to score", {run.path()});
}

int evaluate_runs(const Options& options) {
  for (const std::string& path : options.runs) check_options(RunFolder::open(path), options);  // before the first run takes its time
  std::vector<ScoredRun> scored;
  std::vector<ScoredClassifier> classifiers;
  for (const std::string& path : options.runs) {
    const Scoring scoring(path, options);
    if (is_classifier(scoring.opened.run.config())) classifiers.push_back(score_classifier(scoring));
    else scored.push_back(score(scoring, options));
  }
  if (options.as_json) {
    std::puts(json_of(scored, classifiers).c_str());
    return 0;
  }
  const bool one = options.runs.size() == 1;
  if (!scored.empty()) std::puts((one ? line_of(scored[0]) : table_of(scored)).c_str());
  for (const ScoredClassifier& each : classifiers) std::puts(((one ? "" : each.run + ", ") + line_of(each)).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(
      argc, argv, {"ricci-eval", "How well trained models predict a text: mean negative log likelihood, perplexity, bits per byte."},
      [&](CLI::App& app) {
        app.add_option("run", options.runs, "Runs by their folders or names, such as runs/quickstart or quickstart")->required();
        app.add_option("--data", options.data, "Files or folders to score; each run's validation text if not given");
        app.add_option("--stride", options.stride,
               "Tokens between windows: fewer than the context give each token more context; the context if not given")
            ->check(at_least_one);
        app.add_option(
               "--from", options.from, "First position of a window that is scored, counted from 0; the eval_from of each run if not given")
            ->check(at_least_zero);
        app.add_option("--batch", options.batch, "Windows at a time")->check(at_least_one)->capture_default_str();
        app.add_flag("--json", options.as_json, "Print JSON");
        add_model_options(app, options.model, "Tokens that a window holds");
      },
      [&] { return evaluate_runs(options); });
}
