// ricci-train: trains a language model on a text, or a classifier on labelled documents, or goes on with a run.
//   ricci-train run.yaml model.layers=6 lr=3e-4
//   ricci-train runs/NAME
//   ricci-train runs/NAME --replay
// The table of RICCI_TRACE=1 leaves out the first two steps of this process when there are more: they touch memory for the
// first time, which costs many times what it costs later.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "apps/run/corpus/corpus.h"
#include "apps/run/corpus/micro_batches.h"
#include "apps/run/evaluation/evaluation.h"
#include "apps/run/folder/run_folder.h"
#include "apps/run/folder/run_report.h"
#include "apps/run/init/init.h"
#include "apps/run/metrics/metrics.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"
#include "apps/terminal/streams.h"
#include "core/cpu/clock.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "models/training/optimizer.h"
#include "models/training/train_step.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr int64_t kUntraced = 2;  // steps
constexpr int64_t kMeasured = 3;  // steps after those, whose speed tells how long the run will take

constexpr const char* kNothingGiven =
    "No run file and no keys: a small model learns the text of this project, character by character.\n"
    "ricci-train data=my.txt name=mine trains on a text of yours; --help-config prints every key and its default.\n";

bool is_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

int64_t tokens_per_step(const TrainConfig& config) {
  int64_t tokens = 0, all = 0;
  if (__builtin_mul_overflow(config.accumulation * config.batch, *config.context, &tokens) ||
      __builtin_mul_overflow(tokens, config.steps, &all))
    fail("steps: {} of batch {} and context {} are more tokens than 64 bits can count", {config.steps, config.batch, *config.context});
  return tokens;
}

// Tokens and seconds of training alone; evaluations, saving and pauses are left out.
struct Throughput {
  int64_t tokens = 0;
  double seconds = 0;
  double tokens_per_second() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

// A training under way. After each step it evaluates, writes a record, and saves, where that is due.
struct Training {
  const RunFolder& run;
  Model& model;
  Optimizer& optimizer;
  TrainState& state;
  StepFeed& feed;
  const EvaluationBatches& validation;

  const TrainConfig& config = run.config();
  TrainStep train_step{model, optimizer, config.device, step_options(config)};
  Metrics interrupted = read_record(run.folder(), state.step);  // the record of a step before its evaluation
  MetricsFile metrics{run.folder(), state.awaits_evaluation ? state.step - 1 : state.step, hyper_parameters(config)};
  Progress progress{{.steps = config.steps, .first_step = state.step, .seconds = Pause::seconds_running}};
  Throughput all = {}, since_record = {}, measured = {};
  int64_t first = state.step, saved = state.step;  // steps

  // Takes steps until all are done, patience has run out or an interruption is asked for. Returns what they took.
  Throughput take_steps();
  Metrics take_step();
  bool conclude(Metrics record);
  std::optional<Evaluation> evaluate_model() const;
  void save();
  int64_t evaluation_batch_count() const;
  void tell_time();
};

Throughput Training::take_steps() {
  bool goes_on = !ended_early(config, state);
  if (state.awaits_evaluation) goes_on = conclude(interrupted);
  while (goes_on && state.step < config.steps && !Interrupt::requested()) {
    const Metrics record = take_step();
    progress.update(state.step, all.tokens, format_message("loss {:.3f}", {*record.train_loss}));
    tell_time();
    goes_on = conclude(record);
  }
  if (saved < state.step || (state.step == 0 && Interrupt::requested())) save();  // a folder with a model alone could not go on
  return all;
}

// The step is kept as a file, from which --replay computes it again. Error: names the op that made the first NaN or infinity.
[[noreturn]] void explain(const Training& training, const std::vector<MicroBatch>& micro_batches, double loss) {
  save_nonfinite_step(training.run, training.model, micro_batches, training.state.step);
  try {
    training.train_step.explain_nonfinite(micro_batches, training.state.step, loss);
  } catch (const Error& error) {
    fail("{}; ricci-train {} --replay computes it again", {error.what(), training.run.path()});
  }
}

// Reads the tokens of the next step and takes it.
Metrics Training::take_step() {
  if (state.step == first + kUntraced) trace::restart();
  const double started = Pause::seconds_running();
  StepData data = feed.next();
  const std::vector<MicroBatch> micro_batches = micro_batches_of(data.batches, config.device);
  const double lr = config.schedule.rate(state.step, state.schedule_steps);
  const auto [loss, norm] = train_step.run(micro_batches, state.step, lr);
  if (!std::isfinite(loss) || !std::isfinite(norm)) explain(*this, micro_batches, loss);
  ++state.step;
  state.data_place = std::move(data.place);
  const double seconds = Pause::seconds_running() - started;
  for (Throughput* each : {&all, &since_record, &measured}) {
    each->tokens += tokens_per_step(config);
    each->seconds += seconds;
  }
  return {.step = state.step,
      .train_loss = loss,
      .lr = lr,
      .grad_norm = norm,
      .tokens_per_s = since_record.tokens_per_second(),
      .peak_bytes = memory_use(config.device).peak};
}

// Does all that is due after a step: evaluation, sample, record and checkpoint. False: the training ends here.
bool Training::conclude(Metrics record) {
  const bool last = record.step == config.steps, awaited = state.awaits_evaluation;
  const bool evaluates = last || awaited || is_due(record.step, config.eval_every);
  bool goes_on = true, saves = last || awaited || is_due(record.step, config.checkpoint_every);
  record.tokens = record.step * tokens_per_step(config);
  if (evaluates) {
    const std::optional<Evaluation> result = evaluate_model();
    state.awaits_evaluation = !result;
    if (result) {
      record.val_loss = result->nats_per_token;
      record.val_accuracy = result->accuracy();
      saves |= state.improves(result->nats_per_token);
      goes_on = !out_of_patience(config, state);
      progress.line(evaluation_line(record.step, record.train_loss.value_or(NAN), *result));
    }
    saves |= !goes_on || !result;
    goes_on &= result.has_value();
  }
  if (!last && goes_on && is_due(record.step, config.sample.every) && config.sample.tokens > 0)
    progress.line("\n" + sample_text(run, model, config.device) + "\n");
  if (evaluates || is_due(record.step, config.log_every)) {
    metrics.append(record);
    since_record = {};
  }
  if (saves) save();
  return goes_on;
}

void Training::save() {
  metrics.sync();
  run.save(model, optimizer, state);
  saved = state.step;
}

// Batches of an evaluation, of as many sequences as are computed together.
int64_t Training::evaluation_batch_count() const {
  const int64_t all = validation.count, batches = std::min(config.eval_batches, all) * (config.batch / layout_of(config).sequences);
  return batches ? std::min(batches, all) : all;
}

// Estimates how long the run will take, from the speed of the few steps after the first two.
void Training::tell_time() {
  const int64_t done = state.step - first;
  if (done == kUntraced) measured = {};
  if (done != kUntraced + kMeasured) return;
  const int64_t tokens = evaluation_batch_count() * layout_of(config).sequences * *config.context;
  const std::string line = expected_line(config, state.step, measured.seconds / kMeasured, tokens);
  if (!line.empty()) progress.line(line);
}

// Nothing: an interruption was asked for. Error: the loss is not finite; the next step would fail, and again after each resume from here.
std::optional<Evaluation> Training::evaluate_model() const {
  const StopWhen stop(Interrupt::requested);
  const auto after_batch = [](int64_t) {
    if (Interrupt::requested()) throw Stopped();
  };
  try {
    const Evaluation result = evaluate(model, validation, config.device, evaluation_batch_count(), after_batch);
    if (!std::isfinite(result.nats_per_token))
      fail("step {}: the validation loss is {}; the last step saved is {}", {state.step, result.nats_per_token, saved});
    return result;
  } catch (const Stopped&) {
    return {};
  }
}

// Error: the loss counts no token of a sequence, so that there is nothing to learn.
void check_counts(const Model& model, int64_t context) {
  const Tensor ids_bc = zeros({1, context}, Dtype::i64, Device::cpu);
  if (model.counted({ids_bc, ids_bc}, context) == 0)
    fail("context: {}, too short: the loss of model.family: {} counts no token of it", {context, name_of(model.config().family)});
}

// The model as it is before the first step: drawn, or with the weights of `init` (null: none), which adds its line to the notes.
Model first_model(const TrainConfig& config, const InitSource* init, const Tokenizer& tokenizer, std::string& notes) {
  print_warnings(config);
  Model model(config.model);
  check_counts(model, *config.context);
  model.init(config.seed);
  if (init) notes += init->load(model, tokenizer) + "\n";
  freeze_parameters(model, config.freeze);
  model.place_for_training(storage_dtype(config.precision), config.device);
  model.recompute_blocks(config.recompute == Recompute::blocks);
  return model;
}

int tell_finished(const RunFolder& run, int64_t step) {
  const TrainConfig& config = run.config();
  std::puts(format_message(
      "{}: finished after {} steps already; a larger {}=... goes on", {run.path(), step, step == config.steps ? "steps" : "patience"})
                .c_str());
  return 0;
}

int train(const RunRequest& request) {
  std::signal(SIGPIPE, SIG_IGN);  // a run does not end because its output is not read: Ctrl-C ends `| tee` as well
  TrainConfig config = request.config;
  if (config.threads) set_thread_count(static_cast<int>(config.threads));
  const Device device = config.device;
  require(device);
  RunFolder run = RunFolder::to_train(request);
  config.max_ranks = run.config().max_ranks.value_or(1);
  const std::optional<int64_t> finished = run.finished();
  if (finished && !run.names_other_texts()) return tell_finished(run, *finished);
  // A run that goes on starts from its checkpoint.
  std::optional<InitSource> init;
  if (!config.init.empty() && !run.tokenizer()) init.emplace(config);
  const Corpus corpus = open_corpus(config, init ? init->tokenizer() : run.tokenizer());
  resolve_vocab(config, vocab_of(config, *corpus.tokenizer));
  StepFeed feed(corpus, config);
  const EvaluationBatches validation =
      evaluation_batches(config, corpus.validation, layout_of(config).sequences, *config.context, *config.context);
  std::string notes = corpus.note + ready_prompt(config.sample, corpus);

  Model model = first_model(config, init ? &*init : nullptr, *corpus.tokenizer, notes);
  Optimizer optimizer(model.trained_parameters(), config.optimizer);
  TrainState state = run.resume(model, optimizer, corpus.hash());
  notes += follow_schedule(config, state);
  feed.start(state.step, state.data_place);

  run.begin(config, corpus.tokenizer.get(), state.step);
  if (finished) return tell_finished(run, *finished);
  tell(STDOUT_FILENO, notes + opening_line(run, corpus, model, state) + "\n");
  {
    const Interrupt interrupt;
    const Pause pause;
    const Throughput all = Training{run, model, optimizer, state, feed, validation}.take_steps();
    run.save_model(model, state.step);
    tell(STDOUT_FILENO, closing_line(run, state, all.seconds) + "\n");
  }
  const bool ended = (state.step == config.steps && !state.awaits_evaluation) || ended_early(config, state);
  if (ended && config.sample.tokens > 0) tell(STDOUT_FILENO, "\n" + sample_text(run, model, device) + "\n\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  RunOptions options;
  bool replays = false;
  return run_app(
      argc, argv,
      {"ricci-train",
          "Trains a language model on a text, or a classifier on labelled documents, from a run file, or goes on with the run of a folder.",
          false, true},
      [&](CLI::App& app) {
        add_run_options<TrainConfig>(app, options);
        app.add_flag("--replay", replays,
            "Compute the step of a run that was not finite again, and name the op that made the first NaN or infinity");
      },
      [&] {
        if (replays && options.file().empty()) fail("--replay: expected the folder of a run");
        if (!replays && options.file().empty() && options.overrides().empty()) tell(STDOUT_FILENO, kNothingGiven);
        return replays ? replay_nonfinite_step(options.file(), options.overrides())
                       : train(request_run(options.file(), options.overrides()));
      });
}
