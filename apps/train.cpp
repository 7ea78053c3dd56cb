// ricci-train: trains a language model from a run file and a text, or goes on with a run.
//   ricci-train run.yaml model.layers=6 lr=3e-4
//   ricci-train runs/NAME
#include <chrono>
#include <cmath>
#include <cstdio>

#include "apps/shared/cli.h"
#include "apps/shared/corpus.h"
#include "apps/shared/evaluation.h"
#include "apps/shared/interrupt.h"
#include "apps/shared/metrics.h"
#include "apps/shared/progress.h"
#include "apps/shared/run_folder.h"
#include "apps/shared/run_report.h"
#include "apps/shared/train_step.h"
#include "core/error.h"
#include "core/memory.h"
#include "cuda/device.h"
#include "cuda/parallel.h"
#include "models/optim/optimizer.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

bool is_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The loop: batch, tape, loss, backward, clip, step, log, evaluate, save. Returns its seconds, evaluations and saving left out.
double run_steps(const RunFolder& run, Model& model, Optimizer& optimizer, TrainState& state, const RandomCrops& crops, const Windows& validation,
                 Device device) {
  const TrainConfig& config = run.config();
  const Schedule schedule = schedule_of(config);
  const TrainStep train_step(model, device, config.seed, config.cuda_graph);
  MetricsFile metrics(run.path(), state.step);
  Progress progress({.steps = config.steps, .first_step = state.step});
  const Interrupt interrupt;
  const int64_t first = state.step, step_tokens = config.accumulation * config.batch * *config.context;
  int64_t saved = first;
  double seconds = 0;
  while (state.step < config.steps && !interrupt.requested()) {
    const double started = seconds_now();
    const std::vector<Batch> parts = batches_of_step(crops, config, state.step);
    const double loss = train_step.forward_backward(parts, state.step);
    const double norm = std::isfinite(loss) ? optimizer.gradient_norm() : loss;
    if (!std::isfinite(norm)) train_step.explain_nonfinite(parts, state.step, loss);
    const double lr = schedule.at(state.step);
    optimizer.step(lr, config.clip > 0 && norm > config.clip ? config.clip / norm : 1.0);
    seconds += seconds_now() - started;

    const int64_t done = ++state.step;
    const bool last = done == config.steps, evaluates = last || is_due(done, config.eval_every);
    bool saves = last || is_due(done, config.checkpoint_every);
    progress.update(done, (done - first) * step_tokens, format_message("loss {:.3f}", {loss}));
    Metrics record{done, done * step_tokens, loss, {}, lr, norm, progress.tokens_per_second(), memory_use(device).peak};
    if (evaluates) {
      const Evaluation result = evaluate(model, validation, device, last ? 0 : config.eval_batches);
      record.val_loss = result.nats_per_token;
      saves |= state.improves(result.nats_per_token);
      progress.line(evaluation_line(done, loss, result));
    }
    if (evaluates || is_due(done, config.log_every)) metrics.append(record);
    if (saves) run.save(model, optimizer, state), saved = done;
  }
  if (saved < state.step) run.save(model, optimizer, state);
  return seconds;
}

int train(const RunRequest& request) {
  TrainConfig config = request.config;
  if (config.threads) set_thread_count(static_cast<int>(config.threads));
  const Device device = parse_device(config.device.c_str());
  RunFolder run = RunFolder::to_train(request);
  if (run.finished()) {
    std::printf("%s: finished after %lld steps already; a larger steps=... goes on\n", run.path().c_str(), static_cast<long long>(config.steps));
    return 0;
  }
  const Corpus corpus = open_corpus(config, run.tokenizer());
  config.model.vocab = corpus.tokenizer->vocab_size();
  const RandomCrops crops(corpus.train, cut_of(config).sequences, *config.context, config.seed);
  const Windows validation(corpus.validation, config.batch, *config.context, *config.context);

  Model model(config.model);
  model.init(config.seed);
  model.place_for_training(parse_dtype(config.precision.c_str()), device);
  model.recompute_blocks(config.recompute == "blocks");
  Optimizer optimizer(model.parameters(), optimizer_config(config));
  TrainState state = run.resume(model, optimizer, corpus.train.hash());

  run.begin(config, *corpus.tokenizer, state.step);
  std::puts(opening_line(run, corpus, model, state).c_str());
  std::fflush(stdout);
  const double seconds = run_steps(run, model, optimizer, state, crops, validation, device);
  run.save_model(model, state.step);
  std::puts(closing_line(run, state, seconds).c_str());
  if (state.step == config.steps) write_sample(run, model, device);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  RunOptions options;
  return run_app(argc, argv, {"ricci-train", "Trains a language model from a run file and a text, or goes on with the run of a folder."},
                 [&](CLI::App& app) { add_run_options<TrainConfig>(app, options); },
                 [&] { return train(request_run(options.file(), options.overrides())); });
}
