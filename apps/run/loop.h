// The pieces of a training (apps/run/train.cpp): what comes before and after each step, the work of multiple processes, and the lines that
// are printed. Every rank calls the pieces after the same steps, because all have the same state; only rank 0 writes files and lines.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/corpus.h"
#include "apps/run/evaluation.h"
#include "apps/run/metrics.h"
#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/streams.h"
#include "cuda/ranks/ranks.h"
#include "data/tokenizers/tokenizer.h"
#include "models/training/optimizer.h"
#include "models/training/train_step.h"

namespace ricci::apps {

// True after the last step, after an evaluation that was interrupted, and after one with which patience ran out.
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

  int64_t first_step = state.step, recorded = state.step, saved = state.step;
  double seconds = 0, seconds_since_record = 0;  // steps only: no evaluations, saves and pauses
  std::optional<MetricsFile> metrics = {};       // this and the progress are rank 0's
  std::optional<Progress> progress = {};

  // Opens the records. If an interruption left a step without its evaluation, this is made up for.
  void begin();
  // True if one of the ranks was asked to end. They ask each other before each step, because all must leave before the same one.
  bool is_asked_to_end() const { return ranks.sum_numbers({Interrupt::requested() ? 1.0 : 0.0})[0] > 0; }
  // Returns the result of step(), or nothing if an end was asked for and it takes more than a second longer. Then nothing has changed.
  std::optional<StepResult> run_step(const std::function<StepResult()>& step) const;
  // After a step: shows the progress, and returns the record.
  Metrics report(const StepResult& result, double lr, double step_seconds);
  // The evaluation, the sample, the record and the checkpoint that are due after a step.
  void finish_step(Metrics record);
  // The last checkpoint and the model.
  void end();

 private:
  void save();
  // Puts the loss into the record, and notes in the state if it is the best one. A request to end stops the evaluation: then the state says
  // that it is awaited. Error: the loss is not finite; the next step would fail, also after a resume.
  void evaluate(Metrics& record);
  void print(const std::string& line) {
    if (progress && !line.empty()) progress->line(line);
  }
  int64_t tokens_per_step() const { return config.accumulation * config.batch * config.sequence_length(); }
};

// ---- Multiple processes. Rank 0 has the folder of the run; the others get the config and the tokenizer from it, and open the texts
// themselves. One process sends, waits and compares nothing.

// Errors: a rank is another build than rank 0, or computes with other vector instructions, because the updates would differ by rounding; a
// machine has fewer GPUs than ranks.
void compare_builds(Ranks& ranks, Device device);
// A text is tokenised at most once per machine: rank 0 opens it first, then one rank of each other machine, then the others, which find it
// in the cache. tokenizer: rank 0's, or null. Error also: a rank has another text than rank 0.
Corpus open_in_turn(Ranks& ranks, const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer);
// Error: a rank has other values than rank 0, for example because of a memory fault. `saved` is the last step that was saved.
void compare_replicas(Ranks& ranks, Model& model, int64_t step, int64_t saved);

// ---- Lines
int64_t memory_of(Device device);  // the bytes that a process can have for a step
// Plans a step of one of `ranks` processes before anything is computed. Error: it needs more than `memory` bytes; the message has the
// largest batch that fits.
void check_step(const TrainConfig& config, int64_t memory, int64_t ranks = 1);
// On stderr, a line each: what a user should know about a model that is trained with this context (models/config.h).
void print_warnings(const TrainConfig& config);

// The start of a sample. The default prompt is the end of a line, the first prompt of the validation text if only answers count, or the
// start of a document if an end token separates documents, because a model that learned these has never seen the line end. Not every
// vocabulary has a line end: then the first token of the validation text takes its place, and `note` is a line about that. Error: another
// prompt is empty or not made of the vocabulary, which is to be known before a training and not after it.
struct SampleStart {
  std::vector<int64_t> ids;
  std::string text = {};  // printed before the model's own text
  DecodeState decoded = {};
  std::string note = {};
};
SampleStart start_of_sample(const TrainConfig& config, const Corpus& corpus);
// The text that the config asks for, written by the model as it is now, under a heading. An interruption ends it.
std::string sample_block(const TrainConfig& config, const Corpus& corpus, const Model& model, int64_t step);

// runs/a: 5,200 parameters, vocabulary 102, cpu on 2 threads
// 844,515 tokens to train, 93,836 to validate
// continues after step 250 of 2,000
// 4 ranks on 2 machines, cpu by Open MPI 4.1.4
// Before them the end of the learning rate's schedule, if the run continues past it, and bf16 on a CPU that is faster in f32.
std::string opening_lines(const RunFolder& run, const Corpus& corpus, Model& model, const TrainState& state, const Ranks& ranks);
// step 20: train 4.5581, validation 4.5873, perplexity 98.23 (93,835 tokens)
// A classifier: step 20: train 0.6931, validation 0.6870, accuracy 0.5420 (500 documents)
std::string evaluation_line(int64_t step, double train_loss, const Evaluation& evaluation);
// saved after 20 steps, 0.3 s of training: runs/a/model.safetensors
// On a GPU there is a second line about the memory. A long path has a line of its own.
std::string closing_line(const RunFolder& run, const TrainState& state, double seconds);
// The bytes that the GPU's memory pool holds; nothing on other devices.
std::optional<int64_t> reserved_bytes(Device device);

}  // namespace ricci::apps
