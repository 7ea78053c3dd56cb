// ricci-eval: how well trained models predict a text.
//   ricci-eval runs/NAME --stride 256
//   ricci-eval runs/A runs/B --data wiki.test.tokens --json
#include <cstdio>

#include "apps/corpus/corpus.h"
#include "apps/corpus/micro_batches.h"
#include "apps/evaluation/scored_run.h"
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
  bool as_json = false;
};

ScoredRun score(const std::string& path, const Options& options) {
  const auto [device, run, model, context] = open_model(path, options.model);
  const int64_t stride = options.stride ? options.stride : context;
  const TextSource text = options.data.empty() ? validation_text(run.config()) : text_of(options.data);
  const TokenFile tokens = options.data.empty() ? open_validation(run.config(), *run.tokenizer()) : open_tokens(options.data, *run.tokenizer());
  const Windows windows(tokens, options.batch, context, stride);

  Progress progress({.steps = windows.batches(), .out = stderr});
  const auto show = [&, window = context](int64_t done) { progress.update(done, done * windows.batch() * window); };
  const Evaluation result = evaluate(model, windows, device, 0, show);
  progress.erase();
  return {run.path(), tokens.name(), context, stride, run.context_note(context), result, size_of_text(text)};
}

int evaluate_runs(const Options& options) {
  for (const std::string& path : options.runs) RunFolder::open(path);  // a missing one is told before the first takes its time
  std::vector<ScoredRun> scored;
  for (const std::string& path : options.runs) scored.push_back(score(path, options));
  const bool one = scored.size() == 1;
  std::puts((options.as_json ? json_of(scored) : one ? line_of(scored[0]) : table_of(scored)).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(argc, argv, {"ricci-eval", "How well trained models predict a text: mean negative log likelihood, perplexity, bits per byte."},
                 [&](CLI::App& app) {
                   app.add_option("run", options.runs, "Folders of runs, such as runs/quickstart")->required();
                   app.add_option("--data", options.data, "Files or folders to score; each run's validation text if not given");
                   app.add_option("--stride", options.stride,
                                  "Tokens between windows: fewer than the context give each token more context; the context if not given")->check(at_least_one);
                   app.add_option("--batch", options.batch, "Windows at a time")->check(at_least_one)->capture_default_str();
                   app.add_flag("--json", options.as_json, "Print JSON");
                   add_model_options(app, options.model, "Tokens that a window holds");
                 },
                 [&] { return evaluate_runs(options); });
}
