// ricci-eval: mean negative log likelihood and perplexity of a text under a trained model.
#include <cstdio>

#include "apps/corpus/corpus.h"
#include "apps/corpus/micro_batches.h"
#include "apps/runs/run_folder.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/progress.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/device/device.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string run, device = "cpu", checkpoint = "last", dtype = "f32";
  std::vector<std::string> data;
  int64_t context = 0, stride = 0, batch = 32;
  int threads = 0;
};

int evaluate_run(const Options& options) {
  if (options.threads) set_thread_count(options.threads);
  const Device device = parse_device(options.device.c_str());
  const RunFolder run = RunFolder::open(options.run);
  const Model model = run.load_model(device, options.checkpoint, parse_dtype(options.dtype.c_str()));
  const int64_t context = run.context(options.context);
  const int64_t stride = options.stride ? options.stride : context;
  const TokenFile tokens = options.data.empty() ? open_validation(run.config(), *run.tokenizer()) : open_tokens(options.data, *run.tokenizer());
  const Windows windows(tokens, options.batch, context, stride);

  Progress progress({.steps = windows.batches(), .out = stderr});
  const Evaluation result = evaluate(model, windows, device, 0, [&](int64_t done) { progress.update(done, done * windows.batch() * context); });
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
                   app.add_option("run", options.run, "Folder of a run, such as runs/quickstart")->required();
                   app.add_option("--data", options.data, "Files or folders to score; the run's validation text if not given");
                   app.add_option("--context", options.context, "Tokens a window holds, up to model.ctx; as many as the run was trained with if not given")->check(at_least_one);
                   app.add_option("--stride", options.stride,
                                  "Tokens between windows: fewer than the context give each token more context; the context if not given")->check(at_least_one);
                   app.add_option("--batch", options.batch, "Windows at a time")->check(at_least_one)->capture_default_str();
                   app.add_option("--checkpoint", options.checkpoint, "last, best (by validation loss) or a step that is kept")->capture_default_str();
                   app.add_option("--dtype", options.dtype, "Of weights and activations: f32, f64 or bf16")->capture_default_str();
                   app.add_option("--device", options.device, "cpu, cuda or cuda_emulated")->capture_default_str();
                   app.add_option("--threads", options.threads, "CPU threads; all if not given")->check(thread_number);
                 },
                 [&] { return evaluate_run(options); });
}
