// ricci-train: trains a language model on a text, or a classifier on labelled documents, or goes on with a run.
//   ricci-train run.yaml model.layers=6 lr=3e-4
//   ricci-train runs/NAME
//   ricci-train runs/NAME --replay
//   mpirun -n 4 ricci-train run.yaml accumulation=4
// Training itself is a short loop (apps/examples/small_gpt.cpp):
//   TrainStep train(model, optimizer, device, {.seed = 1, .clip = 1});
//   for (int64_t step = 0; step < steps; ++step) train.run({batch(ids, step)}, step, schedule.rate(step, steps));
// This program adds run files, texts, folders of runs that go on after an interruption, evaluation, and several processes. Its loop is
// TrainingLoop::take_steps in apps/run/training/.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>

#include "apps/run/config/options.h"
#include "apps/run/corpus/corpus.h"
#include "apps/run/corpus/micro_batches.h"
#include "apps/run/evaluation/evaluation.h"
#include "apps/run/folder/run_folder.h"
#include "apps/run/folder/run_report.h"
#include "apps/run/init/init.h"
#include "apps/run/training/shared_run.h"
#include "apps/run/training/training.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/signals.h"
#include "apps/terminal/streams.h"
#include "autograd/gradient_layout.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/gemm/cublas/tuned_products.h"
#include "cuda/ranks/ranks.h"
#include "models/training/optimizer.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

// Error: the loss counts no token of a sequence, so that there is nothing to learn.
void check_counts(const Model& model, int64_t context) {
  const Tensor ids_bc = zeros({1, context}, Dtype::i64, Device::cpu);
  if (model.counted({ids_bc, ids_bc}, context) == 0)
    fail("context: {}, too short: the loss of model.family: {} counts no token of it", {context, name_of(model.config().family)});
}

// The model as it is before the first step, the same on all ranks: drawn, or with the weights of `init` if that is not null, which adds
// its line to the notes.
Model first_model(Ranks& ranks, const TrainConfig& config, const InitSource* init, const Tokenizer& tokenizer, std::string& notes) {
  if (ranks.rank() == 0) print_warnings(config);
  Model model(config.model);
  check_counts(model, *config.context);
  model.init(config.seed);
  if (init) notes += init->load(model, tokenizer) + "\n";
  weights_from_first(ranks, model);
  freeze_parameters(model, config.freeze);
  model.place_for_training(storage_dtype(config.precision), config.device);
  model.recompute_blocks(config.recompute == Recompute::blocks);
  return model;
}

// Each of several ranks has the blocks that it updates.
Optimizer optimizer_of(const Ranks& ranks, Model& model, const OptimizerConfig& config) {
  const std::vector<Parameter*> trained = model.trained_parameters();
  if (ranks.count() == 1) return Optimizer(trained, config);
  const auto mine = GradientLayout(trained, ranks.count()).blocks_of(ranks.rank());
  return Optimizer(trained, config, {mine.begin(), mine.end()});
}

int tell_finished(const RunFolder& run, int64_t step) {
  const TrainConfig& config = run.config();
  run.prune();
  std::puts(format_message(
      "{}: finished after {} steps already; a larger {}=... goes on", {run.path(), step, step == config.steps ? "steps" : "patience"})
                .c_str());
  return 0;
}

// The findings of rank 0 before the training: the folder, which it alone has, and the config, which it sends to the others.
struct Start {
  std::optional<RunFolder> run;
  std::optional<int64_t> finished;  // RunFolder::finished
  TrainConfig config;
  bool is_over = false;  // there is nothing to do
};

void prepare(const TrainConfig& config, Ranks& ranks) {
  if (config.threads) set_thread_count(static_cast<int>(config.threads));
  ranks.set_timeout(static_cast<double>(config.rank_timeout));
  require(config.device);
}

Start start(Ranks& ranks, const RunOptions& options) {
  Start start;
  const std::string told = from_first(ranks, [&] {
    const RunRequest request = request_run(options.file(), options.overrides());
    prepare(request.config, ranks);
    start.run = RunFolder::to_train(request, ranks.count());
    start.config = start.run->config();
    check(start.config);  // with max_ranks
    if (ranks.count() > 1 && start.config.cuda_graph) fail("cuda_graph: not with several ranks yet");
    if (ranks.count() > 1 && start.config.tune_products) fail("tune_products: not with several ranks yet");
    start.finished = start.run->finished();
    const bool is_over = start.finished && !start.run->names_other_texts();
    return is_over ? std::string() : text_of(start.config);
  });
  start.is_over = told.empty();
  if (start.run || start.is_over) return start;
  start.config = config_of(told);
  prepare(start.config, ranks);
  return start;
}

// The weights that a new run starts from, on rank 0. A run that goes on starts from its checkpoint.
std::optional<InitSource> init_of(const RunFolder* run, const TrainConfig& config) {
  if (!run || config.init.empty() || run->tokenizer()) return {};
  return std::optional<InitSource>(std::in_place, config);
}

// Returns null if the config chooses it.
std::shared_ptr<const Tokenizer> first_tokenizer(const RunFolder* run, const std::optional<InitSource>& init) {
  if (init) return init->tokenizer();
  return run ? run->tokenizer() : nullptr;
}

// The text, from which the config gets what it leaves to it: the size of the vocabulary, and the names of classes.
Corpus open_data(Ranks& ranks, TrainConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer) {
  Corpus corpus = open_in_turn(ranks, config, tokenizer);
  config.model.vocab = std::min(config.model.vocab, vocab_of(config, *corpus.tokenizer));
  resolve_vocab(config, corpus.tokenizer->vocab_size());
  resolve_eos(config, *corpus.tokenizer);
  config.labels = corpus.labels;
  return corpus;
}

void write_last_sample(const RunFolder& run, const Corpus& corpus, const Model& model, const TrainState& state) {
  const TrainConfig& config = run.config();
  const bool ended = (state.step == config.steps && !state.awaits_evaluation) || ended_early(config, state);
  if (ended && writes_samples(config)) tell(STDOUT_FILENO, sample_block(run, corpus, model, state.step));
}

int train(Ranks& ranks, const RunOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a run does not end because its output is not read: Ctrl-C ends `| tee` as well
  Start begun = start(ranks, options);
  RunFolder* const run = begun.run ? &*begun.run : nullptr;
  TrainConfig& config = begun.config;
  if (begun.is_over) return run ? tell_finished(*run, *begun.finished) : 0;
  compare_builds(ranks, config.device);
  const std::optional<InitSource> init = init_of(run, config);
  const Corpus corpus = open_data(ranks, config, first_tokenizer(run, init));
  const std::string warning = from_first(ranks, [&] { return check_step(config, memory_of(config.device), ranks.count()); });
  StepFeed feed(corpus, config, share_of(config, ranks).micro_batches());
  const EvaluationBatches validation =
      evaluation_batches(config, corpus.validation, layout_of(config).sequences, *config.context, *config.context);
  std::string notes = corpus.note + ready_prompt(config, corpus);

  Model model = first_model(ranks, config, init ? &*init : nullptr, *corpus.tokenizer, notes);
  Optimizer optimizer = optimizer_of(ranks, model, config.optimizer);
  TrainState state = resume(ranks, run, model, optimizer, corpus.hash());
  notes += follow_schedule(config, state);
  feed.start(state.step, state.data_place);

  const std::string told = from_first(ranks, [&] {
    run->begin(config, corpus.tokenizer.get(), state.step, init ? init->talks() : ImportedTemplate());
    return std::string(begun.finished ? "finished" : "");
  });
  if (config.tune_products) tune_products(TunedProducts(run->place("products.txt")));
  if (told == "finished") return run ? tell_finished(*run, *begun.finished) : 0;
  if (run) tell(STDOUT_FILENO, notes + warning + opening_line(*run, corpus, model, state) + "\n" + ranks_line(ranks, config));
  {
    const Interrupt interrupt;
    TrainingLoop training{ranks, run, config, corpus, model, optimizer, state, feed, validation};
    const Throughput all = training.take_steps();
    training.save_model();
    if (run) tell(STDOUT_FILENO, closing_line(*run, state, all.seconds) + "\n");
  }
  if (run) write_last_sample(*run, corpus, model, state);
  ranks.wait_for_first();
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
