// ricci train: trains a language model on a text or a classifier on labelled documents, or continues a run.
//   ricci train run.yaml model.layers=6 lr=3e-4
//   ricci train runs/NAME
//   mpirun -n 4 ricci train run.yaml accumulation=4
// The training loop itself is short (apps/examples/small_gpt.cpp):
//   TrainStep train(model, optimizer, device, {.seed = 1, .clip = 1});
//   for (int64_t step = 0; step < steps; ++step) train.run({batch(ids, step)}, step, schedule.rate(step, steps));
// This program adds run files, texts, evaluation, run folders that continue after an interruption, and multiple processes. Ranks wait for
// each other, so all call the same functions after the same steps. train() opens, restores and closes the run; take_steps() is the loop.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>

#include "apps/run/batches.h"
#include "apps/run/commands.h"
#include "apps/run/init.h"
#include "apps/run/metrics.h"
#include "apps/run/options.h"
#include "apps/run/output.h"
#include "apps/run/processes.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/streams.h"
#include "core/cpu/available.h"
#include "core/cpu/parallel.h"
#include "core/cpu/prefetch.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "models/training/parameter_groups.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr int64_t kFirstSteps = 2;  // slow: they allocate memory

bool is_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

// True after the last step, after an interrupted evaluation, and after an evaluation that exhausts the patience.
bool is_over(const TrainConfig& config, const TrainState& state) {
  return state.step >= config.steps || state.awaits_evaluation || ended_early(config, state);
}

// Throws Error if a text of a run that continues is missing.
void check_texts(const TrainConfig& config) {
  for (const auto& [key, paths] : {std::pair("data", config.data), std::pair("validation", config.validation)})
    for (const std::string& path : paths)
      if (path != "embedded" && !look_for_data(path)) fail("{0}: {1} does not exist; if it was moved, name it with {0}=PATH", {key, path});
}

// Throws Error if no token of a sequence is scored.
void check_scored(const TrainConfig& config, const Model& model) {
  const int64_t context = config.sequence_length();
  if (first_scored(model, context) == context)
    fail("context: {} is too short for a {} model to score a token", {context, name_of(config.model.family)});
}

// True if any rank was asked to end. All ranks must leave the loop before the same step.
bool end_requested(Ranks& ranks) { return ranks.sum_numbers({Interrupt::requested() ? 1.0 : 0.0})[0] > 0; }

// Adds the evaluation after a step to the step's record and to the state. Error: the loss is not finite (the message gives `saved`, the
// last step saved).
void note_evaluation(const Evaluation& evaluation, Metrics& record, TrainState& state, int64_t saved) {
  if (!std::isfinite(evaluation.nats_per_token))
    fail("step {}: the validation loss is {}; the last saved step is {}", {state.step, evaluation.nats_per_token, saved});
  state.note_evaluation(evaluation.nats_per_token);
  record.val_loss = evaluation.nats_per_token;
  record.val_accuracy = evaluation.accuracy();
}

// Runs the remaining steps, until an interruption. Returns the duration of the steps in seconds, without evaluations and saves.
double take_steps(Ranks& ranks, std::optional<RunFolder>& run, const TrainConfig& config, const Corpus& corpus, Feed& feed,
    const EvaluationBatches& validation, Model& model, Optimizer& optimizer, TrainState& state) {
  const double unknown = unknown_share(validation, *corpus.tokenizer);
  const int64_t first = state.step, tokens_per_step = config.accumulation * config.batch * config.sequence_length();
  int64_t recorded = state.step, saved = state.step;
  double seconds = 0, recorded_seconds = 0;
  std::optional<MetricsFile> metrics;  // on rank 0, like the progress
  std::optional<Progress> progress;
  // An interrupted evaluation is added to the record of its step, and the record is written again.
  Metrics awaited{.step = state.step};
  if (run && state.awaits_evaluation) awaited = read_record(run->path(), state.step);
  awaited.tokens = state.step * tokens_per_step;
  if (run) {
    metrics.emplace(run->path(), state.awaits_evaluation ? state.step - 1 : state.step);
    progress.emplace(ProgressOptions{.steps = config.steps, .first_step = state.step});
  }
  const auto save = [&] {
    if (run) {
      metrics->sync();
      run->save(model, optimizer, state);
    }
    ranks.barrier();
    saved = state.step;
  };
  // Makes each evaluation, sample, record and checkpoint that is due.
  const auto after_step = [&](Metrics record) {
    const bool was_awaited = state.awaits_evaluation;
    const bool evaluates = was_awaited || state.step == config.steps || is_due(state.step, config.eval_every);
    if (evaluates) {
      const Evaluation evaluation = evaluate(model, validation, config.device, {}, ranks, Interrupt::requested);
      state.awaits_evaluation = evaluation.was_stopped();  // the next start repeats the evaluation
      if (!evaluation.was_stopped()) note_evaluation(evaluation, record, state, saved);
      if (run && !evaluation.was_stopped())
        progress->line(evaluation_line(record.step, record.train_loss.value_or(NAN), evaluation, unknown));
    }
    if (!is_over(config, state) && is_due(state.step, config.sample.every)) {
      if (run && writes_samples(config)) progress->line(sample_block(config, corpus, model, state.step));
      ranks.barrier();
    }
    if (evaluates || is_due(state.step, config.log_every) || is_due(state.step, config.norms_every)) {
      if (run) metrics->append(record);
      recorded = state.step;
      recorded_seconds = seconds;
    }
    const bool is_best = state.best_step == state.step;
    if (was_awaited || is_over(config, state) || is_best || is_due(state.step, config.checkpoint_every)) save();
  };

  if (state.awaits_evaluation) after_step(awaited);
  const Range share = share_of(config.micro_batches(), ranks);
  Prefetch<std::pair<std::vector<Batch>, std::string>> steps([&] { return read_step(feed, config, share); });  // reads ahead
  TrainStep train_step(model, optimizer, config.device, step_options(config, share.lo), ranks);
  while (!is_over(config, state) && !end_requested(ranks)) {
    ranks.at(format_message("step {}", {state.step + 1}));
    if (state.step == first + kFirstSteps) trace::restart();
    const double started = seconds_now(), lr = config.schedule.rate(state.step, state.schedule_steps);
    const auto [micro_batches, place] = *steps.next();
    const std::optional<StepResult> result = train_step.run_unless(Interrupt::is_overdue, micro_batches, state.step, lr);
    if (!result) break;
    if (!std::isfinite(result->loss) || !std::isfinite(result->gradient_norm))
      train_step.explain_nonfinite(micro_batches, state.step, result->loss);
    ++state.step;
    state.data_place = place;
    seconds += seconds_now() - started;
    if (run) progress->update(state.step, (state.step - first) * tokens_per_step, format_message("loss {:.3f}", {result->loss}));
    after_step({.step = state.step,
        .tokens = state.step * tokens_per_step,
        .train_loss = result->loss,
        .lr = lr,
        .grad_norm = result->gradient_norm,
        .tokens_per_s = static_cast<double>((state.step - recorded) * tokens_per_step) / (seconds - recorded_seconds),
        .peak_bytes = memory_use(config.device).peak,
        .reserved_bytes = reserved_bytes(config.device),
        .ranks = ranks.count(),
        .norms = result->norms});
  }
  if (saved < state.step || state.step == 0) save();
  return seconds;
}

int train(const RunOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // Ctrl-C also ends `tee` in `ricci train ... | tee log`; the run must still be saved
  Ranks& ranks = Ranks::join();
  // ---- Rank 0 opens the run and sends its config to the others
  std::optional<RunFolder> run;  // only on rank 0: rank 0 writes all files and lines
  if (ranks.rank() == 0) run.emplace(RunFolder::to_train(request_run(options.file(), options.overrides)));
  const std::optional<TrainConfig> shared = share_config(ranks, run);
  if (!shared) return 0;
  const TrainConfig& config = *shared;
  if (config.threads) set_thread_count(static_cast<int>(config.threads));
  ranks.set_timeout(static_cast<double>(config.rank_timeout));
  require(config.device);
  compare_builds(ranks, config.device);

  // ---- Texts
  std::shared_ptr<const Tokenizer> tokenizer = run ? run->tokenizer() : nullptr;
  if (tokenizer) check_texts(config);
  std::optional<InitSource> init;  // only in a new run
  if (run && !config.init.empty() && !tokenizer) init.emplace(config);
  if (init) tokenizer = init->tokenizer();
  const Corpus corpus = open_in_turn(ranks, config, tokenizer);
  check_vocab(config, *corpus.tokenizer);
  const ModelConfig shape = model_config(config, corpus.tokenizer.get());
  if (run) check_step(config, shape, memory_of(config.device), ranks.count());
  const std::unique_ptr<Feed> feed = make_feed(corpus, config);
  const EvaluationBatches validation = evaluation_batches(config, corpus.validation.tokens);
  std::string notes = describe_corpus(config, corpus) + sample_note(config, corpus);

  // ---- Model and optimizer, from the newest checkpoint
  if (run) print_warnings(config);
  Model model(shape);
  check_scored(config, model);
  model.init(config.seed);
  if (init) notes += init->load(model, *corpus.tokenizer) + "\n";
  freeze_parameters(model, config.freeze);
  model.place_for_training(storage_dtype(config.precision), config.device);
  model.recompute_blocks(config.recompute == Recompute::blocks);
  Optimizer optimizer(model.trained_parameters(), config.optimizer);
  TrainState state = run ? run->resume(model, optimizer, corpus.hash()) : TrainState();
  share_training(ranks, model, optimizer, state);
  feed->go_to(state.step, state.data_place);
  if (run) {
    run->begin({corpus.tokenizer.get(), corpus.labels, init ? init->kept_template() : ImportedTemplate(), init ? init->hash() : ""});
    write_output(STDOUT_FILENO, notes + opening_lines(*run, corpus, model, state, ranks));
  }

  // ---- Steps
  {
    const Interrupt interrupt;
    double seconds = 0;
    try {
      seconds = take_steps(ranks, run, config, corpus, *feed, validation, model, optimizer, state);
      if (run) run->save_model(model, state.step);
    } catch (...) {
      if (run) run->note_failure(ranks.where());
      throw;
    }
    if (run) {  // after the last save, a failure is not noted
      run->prune();
      write_output(STDOUT_FILENO, closing_line(*run, state, seconds) + "\n");
    }
  }
  const bool is_interrupted = !is_over(config, state) || state.awaits_evaluation;
  if (run && !is_interrupted && writes_samples(config)) write_output(STDOUT_FILENO, sample_block(config, corpus, model, state.step));
  ranks.barrier();
  return is_interrupted ? Interrupt::exit_code() : 0;
}

void add_options(CLI::App& app, RunOptions& options) {
  add_run_options(app, options);
  app.final_callback([&] {
    if (!options.file().empty() || !options.overrides.empty()) return;
    std::fputs(app.help().c_str(), stdout);
    throw CLI::ValidationError("nothing to train; give a text (data=my.txt name=mine) or a run file (run.yaml)");
  });
}

}  // namespace

const Command ricci::apps::train_command{
    {.name = "ricci train",
        .summary = "Trains a language model on a text or a classifier on labelled documents, or resumes a run.",
        .prints_result = false,
        .may_be_several = true,
        .examples = "ricci train data=my.txt name=mine model.layers=6\n"
                    "ricci train runs/mine steps=4000"},
    with_options<RunOptions, add_options, train>};
