#include "apps/run/batches.h"

#include <algorithm>
#include <utility>

#include "apps/terminal/numbers.h"
#include "core/cpu/available.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "data/feeds/sequence_stream.h"
#include "models/training/parameter_groups.h"

namespace ricci::apps {

StepShape step_shape_of(const TrainConfig& config) {
  return {config.sequences(), config.sequence_length(), config.micro_batches(), storage_dtype(config.precision),
      config.recompute == Recompute::blocks, config.device, [freeze = config.freeze](Model& model) { freeze_parameters(model, freeze); },
      config.cuda_graph, 1, storage_dtype(config.reduce_dtype)};
}

int64_t memory_of(Device device) { return device == Device::cuda ? device_memory(device).total_bytes() : available_memory(); }

void check_step(const TrainConfig& config, const ModelConfig& model, int64_t memory, int64_t ranks) {
  constexpr int64_t few_sequences = 1024, few_batches = 4;  // more would slow the plan
  StepShape shape = step_shape_of(config);
  shape.ranks = ranks;
  shape.micro_batches = std::min(shape.micro_batches, few_batches * ranks);
  const int64_t asked = shape.sequences;
  if (asked > few_sequences || !fits(model, config.optimizer, shape, memory)) {
    const int64_t most = most_sequences(model, config.optimizer, shape, memory);
    if (most == 0) {
      shape.sequences = 1;
      plan_step(model, config.optimizer, shape, false);  // throws errors with other causes, such as a wrong path in freeze
      fail("a step of one sequence of {} tokens needs more than the {} of available memory; use a smaller model or context",
          {shape.context, show_bytes(memory)});
    }
    if (most < asked)  // a tenth stays free for other programs
      fail("batch: {} sequences of {} tokens need more than the {} of available memory; the largest batch that leaves a tenth free is {}",
          {with_commas(asked), shape.context, show_bytes(memory),
              std::max<int64_t>(1, most_sequences(model, config.optimizer, shape, memory - memory / 10))});
  }
  reset_peak(config.device);  // without the plan's own tensors
}

std::unique_ptr<Feed> make_feed(const Corpus& corpus, const TrainConfig& config) {
  const int64_t sequences = config.sequences(), micro_batches = config.micro_batches();
  const int64_t context = config.sequence_length();
  if (config.order == Order::columns && !is_shuffled(config))
    return std::make_unique<ColumnBatches>(corpus.train, sequences, context, micro_batches);
  if (!is_shuffled(config)) return std::make_unique<RandomCrops>(corpus.train, sequences, context, config.seed, micro_batches);
  StreamOptions options{.context = context, .batch = sequences, .seed = config.seed};
  options.shuffle_buffer = config.shuffle_buffer;
  options.weights = config.weights;
  options.full_width = config.cuda_graph;
  options.rows = is_classifier(config) || has_mask(config) ? RowKind::whole : RowKind::cut;
  if (config.pack == Pack::best) options.rows = RowKind::packed;
  return std::make_unique<SequenceStream>(corpus.sources, options);
}

std::pair<std::vector<Batch>, std::string> read_step(Feed& feed, const TrainConfig& config, Range mine) {
  const UncountedMemory ahead;
  std::vector<Batch> batches;
  for (int64_t i = 0; i < config.micro_batches(); ++i)
    if (mine.lo <= i && i < mine.hi) batches.push_back(feed.next());
    else feed.skip();
  return {std::move(batches), feed.place()};
}

EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& tokens, int64_t batch, int64_t context, int64_t stride) {
  if (is_classifier(config) || has_mask(config)) return EvaluationBatches::documents(tokens, batch, context);
  const int64_t window = std::clamp<int64_t>(tokens.size() - 1, 1, context);
  if (config.eval_from >= window)
    fail("eval_from: {} is too large; a window of {} has {} positions, counted from 0", {config.eval_from, tokens.name(), window});
  return EvaluationBatches::windows(tokens, batch, window, window < context ? std::min(stride, window) : stride, config.eval_from);
}

// eval_batches is a number of batches of the size in the run file; batch_invariant divides each batch into sequences.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& validation) {
  const int64_t sequences = config.sequences(), per_batch = config.batch / sequences;
  EvaluationBatches batches = evaluation_batches(config, validation, sequences, config.sequence_length(), config.sequence_length());
  if (config.eval_batches > 0) batches.keep_first(std::min(config.eval_batches, batches.batches()) * per_batch);
  return batches;
}

Evaluation evaluate(
    const Model& model, const EvaluationBatches& batches, Device device, const AfterBatch& after_batch, Ranks& ranks, bool (*stop)()) {
  const auto batch = [&](int64_t i) { return to(batches.at(i), device); };
  return ricci::evaluate(model, batches.batches(), batch, after_batch, ranks, batches.has_answers(), stop);
}

std::string predictions_note(const Predictions& p) {
  return format_message("{:.2f}% of the tokens right, exact answers: {:.1f}%", {100 * p.token_accuracy(), 100 * p.sequence_accuracy()});
}

double unknown_share(const EvaluationBatches& batches, const Tokenizer& tokenizer) {
  const int64_t id = tokenizer.unknown_id();
  double unknown = 0, all = 0;
  for (int64_t i = 0; id >= 0 && i < batches.batches(); ++i) {
    const Batch batch = batches.at(i);
    const auto* const targets = batch.targets.data<int64_t>();
    unknown += static_cast<double>(std::count(targets, targets + batch.targets.size(), id));
    all += static_cast<double>(batch.scored);
  }
  return all > 0 ? unknown / all : 0;
}

std::string unknown_note(double share) { return share == 0 ? "" : format_message(", {:.1f}% <unk>", {100 * share}); }

}  // namespace ricci::apps
