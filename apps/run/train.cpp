// ricci-train: trains a language model on a text, or a classifier on labelled documents, or continues a run.
//   ricci-train run.yaml model.layers=6 lr=3e-4
//   ricci-train runs/NAME
//   ricci-train runs/NAME --replay
//   mpirun -n 4 ricci-train run.yaml accumulation=4
// Training itself is a short loop (apps/examples/small_gpt.cpp):
//   TrainStep train(model, optimizer, device, {.seed = 1, .clip = 1});
//   for (int64_t step = 0; step < steps; ++step) train.run({batch(ids, step)}, step, schedule.rate(step, steps));
// This program adds run files, texts, folders of runs that continue, evaluation, and several processes. train() reads from the top.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <optional>

#include "apps/run/corpus.h"
#include "apps/run/evaluation.h"
#include "apps/run/init.h"
#include "apps/run/loop.h"
#include "apps/run/micro_batches.h"
#include "apps/run/options.h"
#include "apps/run/run.h"
#include "apps/run/run_report.h"
#include "apps/run/shared_run.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/signals.h"
#include "apps/terminal/streams.h"
#include "core/cpu/clock.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/gemm/cublas/tuned_products.h"
#include "cuda/ranks/ranks.h"
#include "models/training/checkpoint.h"
#include "models/training/optimizer.h"
#include "models/training/train_step.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

int print_finished(const RunFolder& run, int64_t step) {
  run.prune();
  const std::string key = step == run.config().steps ? "steps" : "patience";
  std::puts(format_message("{}: finished after {} steps already; a larger {}=... goes on", {run.path(), step, key}).c_str());
  return 0;
}

struct Start {
  std::optional<RunFolder> folder = {};    // on rank 0
  std::optional<TrainConfig> config = {};  // nothing if there is nothing to do
  std::optional<int64_t> finished = {};    // RunFolder::finished
};

// Rank 0 opens the run, and sends its config to the others.
Start open_run(Ranks& ranks, const RunOptions& options) {
  Start start;
  std::string text;
  if (ranks.rank() == 0) {
    const RunRequest request = request_run(options.file(), options.overrides());
    const RunFolder& run = start.folder.emplace(RunFolder::to_train(request));
    check_shared(run.config(), ranks.count());
    start.finished = run.finished();
    if (!start.finished) text = to_lines(run.config());
    if (start.finished && !run.names_other_texts()) print_finished(run, *start.finished);
    else start.config = run.config();
  }
  text = ranks.from_first(text);
  if (ranks.rank() > 0 && !text.empty()) start.config = from_lines(text);
  return start;
}

int train(Ranks& all_ranks, const RunOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a run does not end because its output is not read: Ctrl-C ends `| tee` as well
  Start start = open_run(all_ranks, options);
  if (!start.config) return 0;
  Ranks& ranks = start.finished ? Ranks::alone() : all_ranks;      // a finished run is left to rank 0, which compares its texts
  RunFolder* const run = start.folder ? &*start.folder : nullptr;  // null except on rank 0
  TrainConfig& config = *start.config;
  if (config.threads) set_thread_count(static_cast<int>(config.threads));
  ranks.set_timeout(static_cast<double>(config.rank_timeout));
  require(config.device);
  compare_builds(ranks, config.device);

  // ---- Data
  std::optional<InitSource> init;  // for a new run; one that continues starts from its checkpoint
  if (run && !config.init.empty() && !run->tokenizer()) init.emplace(config);
  std::shared_ptr<const Tokenizer> tokenizer = run ? run->tokenizer() : nullptr;
  if (init) tokenizer = init->tokenizer();
  const Corpus corpus = open_in_turn(ranks, config, tokenizer);
  resolve(config, corpus);
  const std::string warning = run ? check_step(config, memory_of(config.device), ranks.count()) : "";
  const Range share = share_of(layout_of(config).micro_batches, ranks);
  StepFeed feed(corpus, config, share);
  const EvaluationBatches validation = evaluation_batches(config, corpus.validation);
  std::string notes = corpus.note + ready_prompt(config, corpus);

  // ---- Model and optimizer, as the newest checkpoint has them
  if (run) print_warnings(config);
  Model model(config.model);
  if (first_scored(model, *config.context) == *config.context)
    fail("context: {}, too short: the loss of model.family: {} counts no token of it", {*config.context, name_of(config.model.family)});
  model.init(config.seed);
  if (init) notes += init->load(model, *corpus.tokenizer) + "\n";
  freeze_parameters(model, config.freeze);
  model.place_for_training(storage_dtype(config.precision), config.device);
  model.recompute_blocks(config.recompute == Recompute::blocks);
  Optimizer optimizer(model.trained_parameters(), config.optimizer);
  TrainState state = run ? run->resume(run->newest_checkpoint(), model, optimizer, corpus.hash()) : TrainState();
  share_training(ranks, model, optimizer, state);
  notes += follow_schedule(config, state);
  feed.start(state.step, state.data_place);
  if (run) run->begin(config, corpus.tokenizer.get(), state.step, init ? init->talks() : ImportedTemplate());
  if (config.tune_products) tune_products(TunedProducts(run->place("products.txt")));
  if (start.finished) return print_finished(*run, *start.finished);
  if (run) tell(STDOUT_FILENO, notes + warning + opening_line(*run, corpus, model, state) + "\n" + ranks_line(ranks, config.device));

  // ---- Steps
  {
    const Interrupt interrupt;
    TrainStep train_step(model, optimizer, config.device, step_options(config, share.lo), ranks);
    Trainer trainer{ranks, run, config, corpus, model, optimizer, state, validation};
    if (state.awaits_evaluation) trainer.finish_interrupted_step();
    while (!is_over(config, state) && !trainer.is_asked_to_end()) {
      ranks.at(format_message("step {}", {state.step + 1}));
      const double started = seconds_now(), lr = config.schedule.rate(state.step, state.schedule_steps);
      const StepInput input = feed.next();
      const std::optional<StepResult> result =
          trainer.run_step([&] { return train_step.run(input.micro_batches, state.step, lr, [&] { feed.read_ahead(); }); });
      if (!result) break;
      trainer.check_finite(*result, train_step, input.micro_batches);
      ++state.step;
      state.data_place = input.place;
      Metrics record = trainer.report(*result, lr, seconds_now() - started);
      const bool evaluates = state.step == config.steps || is_due(state.step, config.eval_every);
      if (evaluates) trainer.evaluate(record);
      if (!is_over(config, state) && is_due(state.step, config.sample.every)) trainer.write_sample();
      if (evaluates || is_due(state.step, config.log_every)) trainer.write(record);
      if (is_over(config, state) || state.best_step == state.step || is_due(state.step, config.checkpoint_every)) trainer.save();
    }
    if (trainer.saved < state.step || state.step == 0) trainer.save();  // a folder with only a model could not continue
    if (run) {
      run->save_model(model, state.step);
      run->prune();
      tell(STDOUT_FILENO, closing_line(*run, state, trainer.seconds) + "\n");
    }
  }
  if (run && is_over(config, state) && !state.awaits_evaluation && writes_samples(config))
    tell(STDOUT_FILENO, sample_block(*run, corpus, model, state.step));
  ranks.barrier();
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
          false, true, assigned_keys<TrainConfig>},
      [&](CLI::App& app) {
        add_run_options<TrainConfig>(app, options);
        app.add_flag("--replay", replays,
            "Compute the step of a run that was not finite again, and name the op that made the first NaN or infinity");
        app.final_callback([&] {
          if (options.file().empty() && options.overrides().empty() && !replays)
            throw CLI::ValidationError("nothing to train; give a text (data=my.txt name=mine) or a run file (run.yaml)");
        });
      },
      [&] {
        if (replays && options.file().empty()) fail("--replay: expected the folder of a run");
        Ranks& ranks = Ranks::join();
        if (replays && ranks.count() > 1) fail("--replay: runs as one process, but {} were started", {ranks.count()});
        if (replays) return replay_nonfinite_step(options.file(), options.overrides());
        return train(ranks, options);
      });
}
