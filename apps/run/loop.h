// The parts of a training run (apps/run/train.cpp): the work around a step, the work of multiple processes, and the printed lines. Every
// rank calls the same functions after the same steps: ranks wait for each other. Only rank 0 writes files and lines.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/batches.h"
#include "apps/run/corpus.h"
#include "apps/run/metrics.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/streams.h"
#include "cuda/ranks/ranks.h"
#include "models/training/optimizer.h"
#include "models/training/train_step.h"

namespace ricci::apps {

// True after the last step, after an interrupted evaluation, and after an evaluation that ends the training because patience ran out.
inline bool is_over(const TrainConfig& config, const TrainState& state) {
  return state.step >= config.steps || state.awaits_evaluation || ended_early(config, state);
}

struct Trainer {
  Ranks& ranks;
  RunFolder* run;  // null except on rank 0
  const TrainConfig& config;
  const Corpus& corpus;
  Model& model;
  Optimizer& optimizer;
  TrainState& state;
  const EvaluationBatches& validation;
  double unknown = 0;  // unknown_share of the validation

  int64_t first_step = state.step, recorded = state.step, saved = state.step;
  double seconds = 0, seconds_since_record = 0;  // in steps, without evaluations and saves
  std::optional<MetricsFile> metrics = {};       // on rank 0, as is the progress
  std::optional<Progress> progress = {};

  ~Trainer() {
    if (run && std::uncaught_exceptions() > 0) run->note_failure(ranks.where());
  }
  // Opens the records, and makes an evaluation that was interrupted.
  void begin();
  // True if any rank was asked to end: all must leave the loop before the same step.
  bool is_interrupted() const { return ranks.sum_numbers({Interrupt::requested() ? 1.0 : 0.0})[0] > 0; }
  // The result of step(). Nothing, and nothing has changed, if an end was requested and the step takes more than another second.
  std::optional<StepResult> run_step(const std::function<StepResult()>& step) const;
  // Updates the progress, and returns the record of the step.
  Metrics measure(const StepResult& result, double lr, double step_seconds);
  // The evaluation, the sample, the record and the checkpoint that are due after a step.
  void finish_step(Metrics record);
  // Writes the last checkpoint and the model.
  void end();

 private:
  void save();
  // Adds the loss to the record and the state. A request to end leaves state.awaits_evaluation true. Error: the loss is not finite.
  void evaluate(Metrics& record);
  void print(const std::string& line) {
    if (progress && !line.empty()) progress->line(line);
  }
  int64_t tokens_per_step() const { return config.accumulation * config.batch * config.sequence_length(); }
};

// ---- Multiple processes. Rank 0 has the run folder, and sends the config and the tokenizer; each rank opens the texts itself.

// Errors: a rank is a different build than rank 0, or uses other vector instructions; a machine has fewer GPUs than ranks.
void compare_builds(Ranks& ranks, Device device);
// Opens the corpus in turn, so each machine encodes a text only once: rank 0 first, then one rank of each other machine, then the rest, who
// find the text in the cache. `tokenizer`: rank 0's, or null. Error: a rank has a different text than rank 0.
Corpus open_in_turn(Ranks& ranks, const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer);

// ---- Before the first step
int64_t memory_of(Device device);  // bytes that a process can use
// Plans a step of one of `ranks` processes. Error: it needs more than `memory` bytes (with the largest batch that fits).
void check_step(const TrainConfig& config, const ModelConfig& model, int64_t memory, int64_t ranks = 1);
// The warnings about a model trained with this context (models/config.h), on stderr.
void print_warnings(const TrainConfig& config);

// The start of a sample. By default it is a line end; the first prompt of the validation text, if only answers count; or the start of a
// document, if an end token separates documents. A vocabulary without a line end starts with the first token of the validation text, and
// `note` mentions it. Error: the prompt is empty or has characters outside the vocabulary.
struct SampleStart {
  std::vector<int64_t> ids;
  std::string text = {};  // printed before the text that the model writes
  DecodeState decoded = {};
  std::string note = {};
};
SampleStart start_of_sample(const TrainConfig& config, const Corpus& corpus);
// The text that the model writes, under a heading. An interruption ends it.
std::string sample_block(const TrainConfig& config, const Corpus& corpus, const Model& model, int64_t step);

// ---- Lines
// A line if the run ends in the warm-up, or continues past the end of its schedule.
std::string schedule_note(const Schedule& schedule, int64_t steps, const TrainState& state);
// The schedule note, and one about bf16 on a CPU that is faster in f32; then
//   runs/a: 5,200 parameters, vocabulary 102, cpu on 2 threads
//   844,515 tokens to train, 93,836 to validate
std::string opening_lines(const RunFolder& run, const Corpus& corpus, Model& model, const TrainState& state, const Ranks& ranks);
// step 20: train 4.5581, validation 4.5873, perplexity 98.23 (93,835 tokens)
std::string evaluation_line(int64_t step, double train_loss, const Evaluation& evaluation, double unknown = 0);

}  // namespace ricci::apps
