// The steps of a training, and all that is due between them.
#pragma once
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/corpus/corpus.h"
#include "apps/run/corpus/micro_batches.h"
#include "apps/run/evaluation/evaluation.h"
#include "apps/run/folder/run_folder.h"
#include "apps/run/metrics/metrics.h"
#include "apps/run/training/step_notes.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"
#include "cuda/ranks/ranks.h"
#include "models/training/optimizer.h"
#include "models/training/train_step.h"

namespace ricci::apps {

// Tokens and seconds of training alone; evaluations, saving and pauses are left out.
struct Throughput {
  int64_t tokens = 0;
  double seconds = 0;
  double tokens_per_second() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

// The part of a training that rank 0 alone has: its records, and its output.
struct Journal {
  RunFolder& run;
  const TrainState& state;
  Metrics interrupted = read_record(run.folder(), state.step);  // the record of a step before its evaluation
  MetricsFile metrics{run.folder(), state.awaits_evaluation ? state.step - 1 : state.step, hyper_parameters(run.config())};
  Progress progress{{.steps = run.config().steps, .first_step = state.step}};
};

// A training under way, on each of its ranks. After each step it evaluates, writes a record, and saves, where that is due. What is due is
// the same on all ranks, because their state is.
inline TrainStepOptions options_of(const TrainConfig& config) {
  TrainStepOptions options = step_options(config);
  options.micro_batches = layout_of(config).micro_batches;
  return options;
}

// The data of a step, on the host and on the device.
struct StepInput {
  StepData data;
  std::vector<MicroBatch> micro_batches;
};

struct TrainingLoop {
  Ranks& ranks;
  RunFolder* run;  // null on other ranks than the first
  const TrainConfig& config;
  const Corpus& corpus;
  Model& model;
  Optimizer& optimizer;
  TrainState& state;
  StepFeed& feed;
  const EvaluationBatches& validation;

  TrainStep train_step{model, optimizer, config.device, options_of(config), ranks};
  StepNotes notes{ranks};
  std::optional<Journal> journal = run ? std::optional<Journal>(std::in_place, *run, state) : std::nullopt;
  Throughput all = {}, since_record = {}, measured = {};
  int64_t first = state.step, saved = state.step;  // steps
  std::future<StepInput> next = {};                // the input of the next step, or the error of reading it

  // Takes steps until all are done, patience has run out or an interruption is asked for. Returns what they took.
  Throughput take_steps();
  void read_next();
  std::optional<Metrics> take_step();
  std::optional<StepResult> run_step(const std::vector<MicroBatch>& micro_batches, double lr);
  [[noreturn]] void explain(const std::vector<MicroBatch>& micro_batches, double loss);
  std::vector<Batch> whole_step() const;
  bool conclude(Metrics record);
  std::optional<Evaluation> evaluate_model() const;
  void write_sample();
  void save();
  void save_model();
  int64_t evaluation_batch_count() const;
  void tell_time();
  void tell_line(const std::string& text);
  // By any rank. One rank alone need not ask others, and ends before the next step.
  bool is_asked_to_end() const { return notes.asked_to_end() || (ranks.count() == 1 && Interrupt::requested()); }
};

}  // namespace ricci::apps
