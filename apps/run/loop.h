// The pieces of a training's loop (apps/run/train.cpp) around each step: print, evaluate, record, save. Every rank calls them after the
// same steps, because they have the same state; only rank 0 writes files and lines.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/corpus.h"
#include "apps/run/evaluation.h"
#include "apps/run/metrics.h"
#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"
#include "cuda/ranks/ranks.h"
#include "models/training/optimizer.h"
#include "models/training/train_step.h"

namespace ricci::apps {

inline bool is_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

// True after the last step, after an evaluation that was interrupted, and after one with which patience ran out.
inline bool is_over(const TrainConfig& config, const TrainState& state) {
  return state.step >= config.steps || state.awaits_evaluation || ended_early(config, state);
}

// The records and lines of a training.
struct Journal {
  RunFolder& run;
  const TrainState& state;
  Metrics interrupted = read_record(run.folder(), state.step);  // the record of a step before its evaluation
  MetricsFile metrics{run.folder(), state.awaits_evaluation ? state.step - 1 : state.step, hyper_parameters(run.config())};
  Progress progress{{.steps = run.config().steps, .first_step = state.step}};
};

struct Trainer {
  Ranks& ranks;
  RunFolder* run;  // null except on rank 0
  const TrainConfig& config;
  const Corpus& corpus;
  Model& model;
  Optimizer& optimizer;
  TrainState& state;
  const EvaluationBatches& validation;

  std::optional<Journal> journal = run ? std::optional<Journal>(std::in_place, *run, state) : std::nullopt;
  int64_t first_step = state.step, recorded = state.step, saved = state.step;
  double seconds = 0, seconds_since_record = 0, measured_seconds = 0;  // steps only: no evaluations, saves and pauses

  // True if one of the ranks was asked to end. They ask each other before each step, because all must leave before the same one.
  bool is_asked_to_end() const { return ranks.sum_numbers({Interrupt::requested() ? 1.0 : 0.0})[0] > 0; }
  // Returns the result of step(), or nothing if an end was asked for and it takes more than a second longer. Then nothing has changed.
  std::optional<StepResult> run_step(const std::function<StepResult()>& step) const;
  // Error if the result is not finite: names the op that made the first NaN or infinity. --replay computes the step again, from a file.
  void check_finite(const StepResult& result, const TrainStep& step, const std::vector<MicroBatch>& micro_batches) const;
  // After a step: shows the progress, and returns the record.
  Metrics report(const StepResult& result, double lr, double step_seconds);
  // Puts the loss into the record, and notes in the state if it is the best one. A request to end stops the evaluation: then the state says
  // that it is awaited. Error: the loss is not finite; the next step would fail, also after a resume.
  void evaluate(Metrics& record);
  void write_sample();
  void write(Metrics record);
  void save();
  // The evaluation that is awaited, and all that follows it.
  void finish_interrupted_step();

  void print(const std::string& line) {
    if (journal && !line.empty()) journal->progress.line(line);
  }
  int64_t tokens_per_step() const { return config.accumulation * config.batch * *config.context; }
};

}  // namespace ricci::apps
