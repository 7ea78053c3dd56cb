// ricci-eval: mean negative log likelihood and perplexity of a text under a trained model.
#include <cstdio>

#include "apps/corpus/corpus.h"
#include "apps/corpus/micro_batches.h"
#include "apps/terminal/model_options.h"
#include "apps/terminal/progress.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  ModelOptions model;
  std::vector<std::string> data;
  int64_t stride = 0, batch = 32;
};

int evaluate_run(const Options& options) {
  const auto [device, run, model, context] = open_model(options.model);
  const int64_t stride = options.stride ? options.stride : context;
  const TokenFile tokens = options.data.empty() ? open_validation(run.config(), *run.tokenizer()) : open_tokens(options.data, *run.tokenizer());
  const Windows windows(tokens, options.batch, context, stride);

  Progress progress({.steps = windows.batches(), .out = stderr});
  const auto show = [&, window = context](int64_t done) { progress.update(done, done * windows.batch() * window); };
  const Evaluation result = evaluate(model, windows, device, 0, show);
  progress.erase();
  std::puts(format_message("{}: {} tokens, context {}{}, stride {}: {:.4f} nats per token, perplexity {:.3f}",
                           {tokens.name(), result.tokens, context, run.context_note(context), stride, result.nats_per_token, result.perplexity()})
                .c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(argc, argv, {"ricci-eval", "Mean negative log likelihood and perplexity of a text under a trained model."},
                 [&](CLI::App& app) {
                   app.add_option("--data", options.data, "Files or folders to score; the run's validation text if not given");
                   app.add_option("--stride", options.stride,
                                  "Tokens between windows: fewer than the context give each token more context; the context if not given")->check(at_least_one);
                   app.add_option("--batch", options.batch, "Windows at a time")->check(at_least_one)->capture_default_str();
                   add_model_options(app, options.model, "Tokens that a window holds");
                 },
                 [&] { return evaluate_run(options); });
}
