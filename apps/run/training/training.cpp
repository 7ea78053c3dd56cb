// The table of RICCI_TRACE=1 leaves out the first two steps of this process when there are more: they touch memory for the
// first time, which costs many times what it costs later.
#include "apps/run/training/training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/run/folder/run_report.h"
#include "apps/run/init/init.h"
#include "apps/run/training/shared_run.h"
#include "autograd/random.h"
#include "core/cpu/clock.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "cuda/trace.h"
#include "models/training/checkpoint.h"

namespace ricci::apps {
namespace {

constexpr double kPatience = 1;   // seconds that a step may go on after a request to end
constexpr int64_t kUntraced = 2;  // steps
constexpr int64_t kMeasured = 3;  // steps after those, whose speed gives an estimate of the remaining time

bool is_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

int64_t tokens_per_step(const TrainConfig& config) {
  int64_t tokens = 0, all = 0;
  if (__builtin_mul_overflow(config.accumulation * config.batch, *config.context, &tokens) ||
      __builtin_mul_overflow(tokens, config.steps, &all))
    fail("steps: {} of batch {} and context {} are more tokens than 64 bits can count", {config.steps, config.batch, *config.context});
  return tokens;
}

}  // namespace

Throughput TrainingLoop::take_steps() {
  bool goes_on = !ended_early(config, state);
  if (state.awaits_evaluation) goes_on = conclude(journal ? journal->interrupted : Metrics{.step = state.step});
  while (goes_on && state.step < config.steps && !is_asked_to_end()) {
    const std::optional<Metrics> record = take_step();
    if (!record) break;
    if (journal) journal->progress.update(state.step, all.tokens, format_message("loss {:.3f}", {*record->train_loss}));
    tell_time();
    goes_on = conclude(*record);
  }
  if (saved < state.step || (state.step == 0 && is_asked_to_end())) save();  // a folder with a model alone could not go on
  return all;
}

void TrainingLoop::tell_line(const std::string& text) {
  if (journal && !text.empty()) journal->progress.line(text);
}

// The step is kept as a file, from which --replay computes it again: the batches of all ranks, and the weights. Each rank searches its own
// micro-batches. Error: names the op that made the first NaN or infinity, as the first rank that finds one does.
void TrainingLoop::explain(const std::vector<MicroBatch>& micro_batches, double loss) {
  std::vector<TensorSource> weights = weights_of(model, optimizer, ranks);
  if (run) save_nonfinite_step(*run, std::move(weights), micro_batches_of(whole_step(), config.device), state.step);
  else hand_over(std::move(weights));
  ranks.wait_for_first();
  try {
    train_step.explain_nonfinite(micro_batches, state.step, loss);
  } catch (const Error& error) {  // the same on all ranks
    fail("{}; ricci-train {} --replay computes it again", {error.what(), run ? run->path() : ""});
  }
}

// The micro-batches of all ranks in the step that comes next.
std::vector<Batch> TrainingLoop::whole_step() const {
  StepFeed all(corpus, config, {0, layout_of(config).micro_batches});
  all.start(state.step, state.data_place);
  return all.next().batches;
}

// Returns nullopt if the step was given up. Its gradients are then dropped, and the random state is as it was before.
std::optional<StepResult> TrainingLoop::run_step(const std::vector<MicroBatch>& micro_batches, double lr) {
  static double deadline = 0;  // from when on the end of a step is not waited for
  deadline = seconds_now() + kPatience;
  const RandomState before = random_state();
  std::optional<StopWhen> stop;
  if (ranks.count() == 1 && !config.cuda_graph) stop.emplace([] { return Interrupt::requested() && seconds_now() > deadline; });
  try {
    return train_step.run(micro_batches, state.step, lr, notes.numbers(Interrupt::requested(), memory_use(config.device).peak), [this] {
      if (state.step + 1 < config.steps) read_next();
    });
  } catch (const Stopped&) {
    model.each_parameter([](const std::string&, Parameter& p) { p.grad = {}; });
    set_random_state(before);
    return {};
  }
}

// The tokens of a step go to the GPU while it computes the step before, because otherwise it would stand idle until they are there. If they
// cannot be read, the error is thrown in their own step, after the step before was recorded and saved.
void TrainingLoop::read_next() {
  std::packaged_task<StepInput()> read([this] {
    StepData data = feed.next();
    std::vector<MicroBatch> micro_batches = micro_batches_of(data.batches, config.device);
    return StepInput{std::move(data), std::move(micro_batches)};
  });
  next = read.get_future();
  read();
}

// Takes the next step. Returns nullopt if it takes long and an end was asked for; nothing has changed then.
std::optional<Metrics> TrainingLoop::take_step() {
  if (state.step == first + kUntraced) trace::restart();
  ranks.at(format_message("step {}", {state.step + 1}));
  const double started = seconds_now();
  if (!next.valid()) read_next();
  StepInput input = next.get();
  const double lr = config.schedule.rate(state.step, state.schedule_steps);
  const std::optional<StepResult> result = run_step(input.micro_batches, lr);
  if (!result) return {};
  const auto [loss, norm] = *result;
  if (!std::isfinite(loss) || !std::isfinite(norm)) explain(input.micro_batches, loss);
  ++state.step;
  state.data_place = std::move(input.data.place);
  const double seconds = seconds_now() - started;
  for (Throughput* each : {&all, &since_record, &measured}) {
    each->tokens += tokens_per_step(config);
    each->seconds += seconds;
  }
  tell_line(notes.take(train_step.from_ranks(), seconds));
  return Metrics{.step = state.step,
      .train_loss = loss,
      .lr = lr,
      .grad_norm = norm,
      .tokens_per_s = since_record.tokens_per_second(),
      .peak_bytes = std::max(notes.peak_bytes(), memory_use(config.device).peak),
      .reserved_bytes = reserved_bytes(config.device),
      .ranks = ranks.count()};
}

// Does all that is due after a step: evaluation, sample, record and checkpoint. Returns false if the training ends here.
bool TrainingLoop::conclude(Metrics record) {
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
      tell_line(evaluation_line(record.step, record.train_loss.value_or(NAN), *result));
    }
    saves |= !goes_on || !result;
    goes_on &= result.has_value();
  }
  if (!last && goes_on && is_due(record.step, config.sample.every) && writes_samples(config)) write_sample();
  if (evaluates || is_due(record.step, config.log_every)) {
    if (const std::optional<double> measured_now = notes.exchange_ms()) record.exchange_ms = measured_now;
    if (journal) journal->metrics.append(record);
    since_record = {};
  }
  if (saves) save();
  return goes_on;
}

void TrainingLoop::write_sample() {
  if (run) tell_line(sample_block(*run, corpus, model, state.step));
  ranks.wait_for_first();
}

void TrainingLoop::save() {
  compare_replicas(ranks, model, state.step, saved);
  if (journal) journal->metrics.sync();
  if (run) run->save(model, optimizer, state, ranks);
  else hand_over_checkpoint(model, optimizer, ranks);
  ranks.wait_for_first();  // which syncs
  saved = state.step;
}

void TrainingLoop::save_model() {
  std::vector<TensorSource> weights = weights_of(model, optimizer, ranks);
  if (!run) return hand_over(std::move(weights));
  run->save_weights(kModelFile, std::move(weights), state.step);
  run->prune();
}

// Batches of an evaluation. A batch is the sequences that are computed together.
int64_t TrainingLoop::evaluation_batch_count() const {
  const int64_t all = validation.count, batches = std::min(config.eval_batches, all) * (config.batch / layout_of(config).sequences);
  return batches ? std::min(batches, all) : all;
}

// Estimates how long the run will take, from the speed of the few steps after the first two.
void TrainingLoop::tell_time() {
  const int64_t done = state.step - first;
  if (done == kUntraced) measured = {};
  if (done != kUntraced + kMeasured) return;
  const int64_t tokens = evaluation_batch_count() * layout_of(config).sequences * *config.context;
  const std::string line = expected_line(config, state.step, measured.seconds / kMeasured, tokens);
  tell_line(line);
}

// Returns nullopt if an interruption was asked for. Error: the loss is not finite; the next step would fail, also after a resume.
std::optional<Evaluation> TrainingLoop::evaluate_model() const {
  const StopWhen stop(Interrupt::requested);
  const auto after_batch = [](int64_t) {
    if (Interrupt::requested()) throw Stopped();
  };
  try {
    const Evaluation result = evaluate(model, validation, config.device, evaluation_batch_count(), after_batch, ranks);
    if (!std::isfinite(result.nats_per_token))
      fail("step {}: the validation loss is {}; the last step saved is {}", {state.step, result.nats_per_token, saved});
    return result;
  } catch (const Stopped&) {
    return {};
  }
}

}  // namespace ricci::apps
