// ricci train: trains a language model on a text or a classifier on labelled documents, or continues a run.
//   ricci train run.yaml model.layers=6 lr=3e-4
//   ricci train runs/NAME
//   mpirun -n 4 ricci train run.yaml accumulation=4
// Training itself is a short loop (apps/examples/small_gpt.cpp):
//   TrainStep train(model, optimizer, device, {.seed = 1, .clip = 1});
//   for (int64_t step = 0; step < steps; ++step) train.run({batch(ids, step)}, step, schedule.rate(step, steps));
// This program adds run files, texts, evaluation, run folders that continue after an interruption, and multiple processes. train() reads
// from the top; loop.h has its parts.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>

#include "apps/run/commands.h"
#include "apps/run/init.h"
#include "apps/run/loop.h"
#include "apps/run/options.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/table.h"
#include "core/cpu/available.h"
#include "core/cpu/parallel.h"
#include "core/cpu/prefetch.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "models/training/freeze.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr const char* kFinished = "finished";  // sent instead of a config

std::string describe_finished(const RunFolder& run, int64_t step) {
  const char* const key = step == run.config().steps ? "steps" : "patience";
  return format_message("{}: already finished after {} steps; set a larger {}= to continue\n", {run.path(), with_commas(step), key});
}

// Error: a text of a run that continues is not where it was.
void check_texts(const TrainConfig& config) {
  for (const auto& [key, paths] : {std::pair("data", config.data), std::pair("validation", config.validation)})
    for (const std::string& path : paths)
      if (path != "embedded" && !look_for_data(path)) fail("{0}: {1} is not there; {0}=PATH names the text if it was moved", {key, path});
}

// Error: no token of a sequence is scored.
void check_scored(const TrainConfig& config, const Model& model) {
  const int64_t context = config.sequence_length();
  if (first_scored(model, context) == context)
    fail("context: {}, too short: the loss of model.family: {} counts no token of it", {context, name_of(config.model.family)});
}

int train(Ranks& ranks, const RunOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // Ctrl-C also ends the reader in `ricci train ... | tee log`, and the run must still be saved
  // ---- Rank 0 opens the run, and sends its config to the others
  std::optional<RunFolder> folder;
  if (ranks.rank() == 0) folder.emplace(RunFolder::to_train(request_run(options.file(), options.overrides)));
  RunFolder* const run = folder ? &*folder : nullptr;  // null except on rank 0
  if (run) check_shared(run->config(), ranks.count());
  const std::optional<int64_t> finished = run ? run->finished() : std::nullopt;
  std::string lines;
  if (run) lines = finished ? kFinished : to_yaml(run->config());
  lines = ranks.from_first(lines);
  if (finished) {
    run->prune();
    write_output(STDOUT_FILENO, describe_finished(*run, *finished));
  }
  if (lines == kFinished) return 0;
  const TrainConfig config = run ? run->config() : recorded_config<TrainConfig>(lines, ranks.name(0));
  if (config.threads) set_thread_count(static_cast<int>(config.threads));
  ranks.set_timeout(static_cast<double>(config.rank_timeout));
  require(config.device);
  compare_builds(ranks, config.device);

  // ---- Data
  std::shared_ptr<const Tokenizer> tokenizer = run ? run->tokenizer() : nullptr;
  std::optional<InitSource> init;  // only of a new run
  if (run && !config.init.empty() && !tokenizer) init.emplace(config);
  if (init) tokenizer = init->tokenizer();
  if (run && run->tokenizer()) check_texts(config);
  const Corpus corpus = open_in_turn(ranks, config, tokenizer);
  check_vocab(config, *corpus.tokenizer);
  const ModelConfig shape = model_config(config, corpus.tokenizer.get());
  if (run) check_step(config, shape, memory_of(config.device), ranks.count());
  const Range share = share_of(layout_of(config).micro_batches, ranks);
  const std::unique_ptr<Feed> feed = make_feed(corpus, config);
  const EvaluationBatches validation = evaluation_batches(config, corpus.validation.tokens);
  const std::string sample_note = start_of_sample(config, corpus).note;

  // ---- Model and optimizer, from the newest checkpoint
  if (run) print_warnings(config);
  Model model(shape);
  check_scored(config, model);
  model.init(config.seed);
  const std::string init_note = init ? init->load(model, *corpus.tokenizer) + "\n" : "";
  freeze_parameters(model, config.freeze);
  model.place_for_training(storage_dtype(config.precision), config.device);
  model.recompute_blocks(config.recompute == Recompute::blocks);
  Optimizer optimizer(model.trained_parameters(), config.optimizer);
  TrainState state = run ? run->resume(model, optimizer, corpus.hash()) : TrainState();
  share_training(ranks, model, optimizer, state);
  feed->go_to(state.step, state.data_place);
  Prefetch<StepBatches> steps([&] { return read_step(*feed, config, share); });  // reads the next steps during a step
  if (run) run->begin({corpus.tokenizer.get(), corpus.labels, init ? init->kept_template() : ImportedTemplate(), init ? init->hash() : ""});
  const std::string notes = describe_corpus(config, corpus) + sample_note + init_note;
  if (run) write_output(STDOUT_FILENO, notes + opening_lines(*run, corpus, model, state, ranks));

  // ---- Steps
  {
    const Interrupt interrupt;
    TrainStep train_step(model, optimizer, config.device, step_options(config, share.lo), ranks);
    Trainer trainer{ranks, run, config, corpus, model, optimizer, state, validation, unknown_share(validation, *corpus.tokenizer)};
    trainer.begin();
    while (!is_over(config, state) && !trainer.is_interrupted()) {
      ranks.at(format_message("step {}", {state.step + 1}));
      const double started = seconds_now(), lr = config.schedule.rate(state.step, state.schedule_steps);
      const StepBatches input = *steps.next();
      const std::optional<StepResult> result = trainer.run_step([&] { return train_step.run(input.micro_batches, state.step, lr); });
      if (!result) break;
      if (!std::isfinite(result->loss) || !std::isfinite(result->gradient_norm))
        train_step.explain_nonfinite(input.micro_batches, state.step, result->loss);
      ++state.step;
      state.data_place = input.place;
      trainer.finish_step(trainer.measure(*result, lr, seconds_now() - started));
    }
    trainer.end();
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

int run(const RunOptions& options) { return train(Ranks::join(), options); }

}  // namespace

const Command ricci::apps::train_command{
    {.name = "ricci train",
        .summary = "Trains a language model on a text or a classifier on labelled documents, or resumes a run.",
        .prints_result = false,
        .may_be_several = true,
        .examples = "ricci train data=my.txt name=mine model.layers=6\n"
                    "ricci train runs/mine steps=4000"},
    with_options<RunOptions, add_options, run>};
