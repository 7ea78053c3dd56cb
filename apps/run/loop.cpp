#include "apps/run/loop.h"

#include <cmath>

#include "apps/run/micro_batches.h"
#include "apps/run/run_report.h"
#include "apps/run/shared_run.h"
#include "autograd/random.h"
#include "core/cpu/clock.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "cuda/trace.h"
#include "models/training/checkpoint.h"

namespace ricci::apps {
namespace {

constexpr double kPatience = 1;     // seconds that a step may take after a request to end
constexpr int64_t kFirstSteps = 2;  // they touch memory for the first time, which costs many times what it costs later
constexpr int64_t kMeasured = 3;    // steps after those; their speed gives an estimate of the remaining time

}  // namespace

std::optional<StepResult> Trainer::run_step(const std::function<StepResult()>& step) const {
  if (state.step == first_step + kFirstSteps) trace::restart();
  static double deadline = 0;
  deadline = seconds_now() + kPatience;
  const RandomState before = random_state();
  std::optional<StopWhen> stop;
  if (ranks.count() == 1 && !config.cuda_graph) stop.emplace([] { return Interrupt::requested() && seconds_now() > deadline; });
  try {
    return step();
  } catch (const Stopped&) {
    model.each_parameter([](const std::string&, Parameter& p) { p.grad = {}; });
    set_random_state(before);
    return {};
  }
}

void Trainer::check_finite(const StepResult& result, const TrainStep& step, const std::vector<MicroBatch>& micro_batches) const {
  if (std::isfinite(result.loss) && std::isfinite(result.gradient_norm)) return;
  if (run) {
    StepFeed of_all_ranks(corpus, config, {0, layout_of(config).micro_batches});
    of_all_ranks.start(state.step, state.data_place);
    save_nonfinite_step(*run, weights_of(model), of_all_ranks.next().micro_batches, state.step);
  }
  ranks.barrier();
  try {
    step.explain_nonfinite(micro_batches, state.step, result.loss);
  } catch (const Error& error) {
    fail("{}; ricci-train {} --replay computes it again", {error.what(), run ? run->path() : ""});
  }
}

Metrics Trainer::report(const StepResult& result, double lr, double step_seconds) {
  const int64_t done = state.step - first_step;
  seconds += step_seconds;
  seconds_since_record += step_seconds;
  if (journal) journal->progress.update(state.step, done * tokens_per_step(), format_message("loss {:.3f}", {result.loss}));
  const int64_t evaluation_tokens = validation.count * layout_of(config).sequences * *config.context;
  if (done > kFirstSteps) measured_seconds += step_seconds;
  if (done == kFirstSteps + kMeasured) print(expected_line(config, state.step, measured_seconds / kMeasured, evaluation_tokens));
  return {.step = state.step,
      .train_loss = result.loss,
      .lr = lr,
      .grad_norm = result.gradient_norm,
      .tokens_per_s = static_cast<double>((state.step - recorded) * tokens_per_step()) / seconds_since_record,
      .peak_bytes = memory_use(config.device).peak,
      .reserved_bytes = reserved_bytes(config.device),
      .ranks = ranks.count()};
}

void Trainer::evaluate(Metrics& record) {
  const StopWhen stop(Interrupt::requested);
  const auto after_batch = [](int64_t) {
    if (Interrupt::requested()) throw Stopped();
  };
  state.awaits_evaluation = true;
  try {
    const Evaluation result = apps::evaluate(model, validation, config.device, 0, after_batch, ranks);
    if (!std::isfinite(result.nats_per_token))
      fail("step {}: the validation loss is {}; the last step saved is {}", {state.step, result.nats_per_token, saved});
    state.awaits_evaluation = false;
    state.note_evaluation(result.nats_per_token);
    record.val_loss = result.nats_per_token;
    record.val_accuracy = result.accuracy();
    print(evaluation_line(record.step, record.train_loss.value_or(NAN), result));
  } catch (const Stopped&) {  // it stays awaited
  }
}

void Trainer::write_sample() {
  if (run && writes_samples(config)) print(sample_block(*run, corpus, model, state.step));
  ranks.barrier();
}

void Trainer::write(Metrics record) {
  record.tokens = record.step * tokens_per_step();
  if (journal) journal->metrics.append(record);
  recorded = state.step;
  seconds_since_record = 0;
}

void Trainer::save() {
  compare_replicas(ranks, model, state.step, saved);
  if (run) {
    journal->metrics.sync();
    run->save(model, optimizer, state);
  }
  ranks.barrier();
  saved = state.step;
}

void Trainer::finish_interrupted_step() {
  Metrics record = journal ? journal->interrupted : Metrics{.step = state.step};
  evaluate(record);
  if (!is_over(config, state) && is_due(state.step, config.sample.every)) write_sample();
  write(record);
  save();
}

}  // namespace ricci::apps
