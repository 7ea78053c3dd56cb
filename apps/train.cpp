// ricci-train: trains a language model from a run file and a text.
//   ricci-train run.yaml model.layers=6 lr=3e-4
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
#include "apps/shared/sampling.h"
#include "apps/shared/train_step.h"
#include "core/error.h"
#include "core/memory.h"
#include "cuda/device.h"
#include "cuda/parallel.h"
#include "models/optim/optimizer.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

void write_sample(const RunFolder& run, const Model& model, Device device) {
  const SampleConfig& sample = run.config().sample;
  if (sample.tokens == 0) return;
  std::string text = sample.prompt;
  generate(model, run.tokenizer()->encode(sample.prompt), sample.tokens, sample.sampling, device, [&](int64_t token) {
    text += run.tokenizer()->decode({&token, 1});
    return true;
  });
  std::printf("\n%s\n\n", text.c_str());
}

std::string opening_line(const RunFolder& run, const Corpus& corpus, Model& model) {
  return format_message("{}: {} parameters, {} + {} tokens, vocabulary {}, {} on {} threads",
                        {run.path(), with_commas(model.parameter_count()), with_commas(corpus.train.size()), with_commas(corpus.validation.size()),
                         corpus.tokenizer->vocab_size(), run.config().device, thread_count()});
}

std::string evaluation_line(int64_t step, double train_loss, const Evaluation& e) {
  return format_message("step {}: train loss {:.4f}, validation loss {:.4f} over {} tokens, perplexity {:.2f}",
                        {with_commas(step), train_loss, e.nats_per_token, with_commas(e.tokens), e.perplexity()});
}

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Trained {
  int64_t steps = 0;
  double seconds = 0;  // evaluations left out
};

// The loop: batch, tape, loss, backward, clip, step, log, evaluate.
Trained run_steps(const RunFolder& run, Model& model, const RandomCrops& crops, const Windows& validation, Device device, Progress& progress) {
  const TrainConfig& config = run.config();
  Optimizer optimizer(model.parameters(), optimizer_config(config));
  const Schedule schedule = schedule_of(config);
  const TrainStep train_step(model, device, config.seed);
  MetricsFile metrics(run.file("metrics.jsonl"));
  const Interrupt interrupt;
  Trained trained;
  int64_t& done = trained.steps;
  while (done < config.steps && !interrupt.requested()) {
    const double started = seconds_now();
    const std::vector<Batch> parts = batches_of_step(crops, config, done);
    const double loss = train_step.forward_backward(parts, done);
    const double norm = std::isfinite(loss) ? optimizer.gradient_norm() : loss;
    if (!std::isfinite(norm)) train_step.explain_nonfinite(parts, done, loss);
    const double lr = schedule.at(done);
    optimizer.step(lr, config.clip > 0 && norm > config.clip ? config.clip / norm : 1.0);
    trained.seconds += seconds_now() - started;

    const int64_t tokens = ++done * config.accumulation * config.batch * parts[0].context;
    const bool last = done == config.steps, evaluates = last || (config.eval_every > 0 && done % config.eval_every == 0);
    progress.update(done, tokens, format_message("loss {:.3f}", {loss}));
    if (!evaluates && done % config.log_every != 0) continue;
    Metrics record{done, tokens, loss, {}, lr, norm, progress.tokens_per_second(), memory_use(device).peak};
    if (evaluates) {
      const Evaluation result = evaluate(model, validation, device, last ? 0 : config.eval_batches);
      record.val_loss = result.nats_per_token;
      progress.line(evaluation_line(done, loss, result));
    }
    metrics.append(record);
  }
  return trained;
}

int train(TrainConfig config) {
  if (config.threads) set_thread_count(static_cast<int>(config.threads));
  const Device device = parse_device(config.device.c_str());
  const Corpus corpus = open_corpus(config);
  config.model.vocab = corpus.tokenizer->vocab_size();
  const int64_t context = config.context.value_or(config.model.ctx);
  const RandomCrops crops(corpus.train, cut_of(config).sequences, context, config.seed);
  const Windows validation(corpus.validation, config.batch, context, context);

  Model model(config.model);
  model.init(config.seed);
  model.place(Dtype::f32, device);
  model.recompute_blocks(config.recompute == "blocks");

  const RunFolder run = RunFolder::create(config, *corpus.tokenizer);
  Progress progress({.steps = config.steps});
  progress.line(opening_line(run, corpus, model));
  const Trained trained = run_steps(run, model, crops, validation, device, progress);
  progress.erase();
  run.save_model(model, trained.steps);
  const bool finished = trained.steps == config.steps;
  std::printf("%s after %lld steps, %.1f s of training: %s\n", finished ? "saved" : "interrupted, saved", static_cast<long long>(trained.steps),
              trained.seconds, run.file("model.safetensors").c_str());
  if (finished) write_sample(run, model, device);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  RunOptions options;
  return run_app(argc, argv, {"ricci-train", "Trains a language model from a run file and a text."},
                 [&](CLI::App& app) { add_run_options<TrainConfig>(app, options); },
                 [&] { return train(load_config<TrainConfig>(options.file(), options.overrides())); });
}
