#include "apps/run/batches.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "cuda/device/device.h"
#include "data/feeds/evaluation.h"
#include "data/feeds/sequence_stream.h"
#include "models/training/freeze.h"

namespace ricci::apps {
namespace {

Tensor tensor_of(const std::vector<int64_t>& ids_bc, const Shape& shape, Device device) {
  const Tensor t(shape, Dtype::i64);
  std::copy(ids_bc.begin(), ids_bc.end(), t.data<int64_t>());
  return to(t, device);
}

std::unique_ptr<Feed> make_feed(const Corpus& corpus, const TrainConfig& config) {
  const auto [sequences, micro_batches] = layout_of(config);
  const int64_t context = config.sequence_length();
  if (config.order == Order::columns && !is_shuffled(config))
    return std::make_unique<ColumnBatches>(corpus.train, sequences * micro_batches, sequences, context);
  if (!is_shuffled(config)) return std::make_unique<RandomCrops>(corpus.train, sequences, context, config.seed, micro_batches);
  StreamOptions options{.context = context, .batch = sequences, .seed = config.seed};
  options.shuffle_buffer = config.shuffle_buffer;
  options.weights = config.weights;
  options.full_width = config.cuda_graph;
  options.rows = is_classifier(config) || has_mask(config) ? RowKind::whole : RowKind::cut;
  if (config.pack == Pack::best) options.rows = RowKind::packed;
  return std::make_unique<SequenceStream>(corpus.sources, options);
}

}  // namespace

MicroBatch micro_batch_of(const Batch& batch, Device device) {
  const Shape shape{batch.batch, batch.context};
  const Tensor ids = tensor_of(batch.ids_bc, shape, device);
  if (batch.labels_b.empty()) return {{ids, tensor_of(batch.targets_bc, shape, device)}, batch.scored};
  return {{ids, tensor_of(batch.labels_b, {batch.batch}, device), tensor_of(batch.lengths_b, {batch.batch}, device)}, batch.scored};
}

StepLayout layout_of(const TrainConfig& config) {
  if (config.batch_invariant) return {1, config.batch * config.accumulation};
  return {config.batch, config.accumulation};
}

StepShape step_shape_of(const TrainConfig& config) {
  const StepLayout layout = layout_of(config);
  return {layout.sequences, config.sequence_length(), layout.micro_batches, storage_dtype(config.precision),
      config.recompute == Recompute::blocks, config.device, [freeze = config.freeze](Model& model) { freeze_parameters(model, freeze); },
      config.cuda_graph, 1, storage_dtype(config.reduce_dtype)};
}

StepFeed::StepFeed(const Corpus& corpus, const TrainConfig& config, Range mine)
    : config_(config), mine_(mine), feed_(make_feed(corpus, config)) {}

void StepFeed::start(int64_t step, const std::string& place) {
  feed_->go_to(step, place);
  const auto make = [this, left = config_.steps - step]() mutable -> std::optional<StepData> {
    if (left-- <= 0) return {};
    StepData step;
    for (int64_t i = 0; i < layout_of(config_).micro_batches; ++i)
      if (mine_.lo <= i && i < mine_.hi) step.batches.push_back(feed_->next());
      else feed_->skip();
    step.place = feed_->place();
    return step;
  };
  thread_ = std::make_unique<Prefetch<StepData>>(make);
}

StepInput StepFeed::next() {
  std::optional<StepData> data = thread_->next();
  if (!data) fail("training data: the last step was read already");
  StepInput input{.micro_batches = {}, .place = std::move(data->place)};
  for (const Batch& batch : data->batches) input.micro_batches.push_back(micro_batch_of(batch, config_.device));
  return input;
}

EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& tokens, int64_t batch, int64_t context, int64_t stride) {
  if (is_classifier(config)) return {DocumentBatches(tokens, batch, context), context};
  if (has_mask(config)) return {DocumentBatches(tokens, batch, context), context, true};
  const int64_t window = std::clamp<int64_t>(tokens.size() - 1, 1, context);
  if (config.eval_from >= window)
    fail("eval_from: {}, but a window of {} has {} positions, counted from 0", {config.eval_from, tokens.name(), window});
  const Windows windows(tokens, batch, window, window < context ? window : stride, config.eval_from);
  return {windows, window, false, std::min(stride, window)};
}

// eval_batches counts batches of the run file; batch_invariant divides each into sequences.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& validation) {
  const int64_t sequences = layout_of(config).sequences, per_batch = config.batch / sequences;
  EvaluationBatches batches = evaluation_batches(config, validation, sequences, config.sequence_length(), config.sequence_length());
  if (config.eval_batches > 0) batches.count = std::min(batches.count, std::min(config.eval_batches, batches.count) * per_batch);
  return batches;
}

Evaluation evaluate(const Model& model, const EvaluationBatches& batches, Device device, const AfterBatch& after_batch, Ranks& ranks) {
  const auto batch = [&](int64_t i) { return micro_batch_of(batches.batch_at(i), device); };
  return ricci::evaluate(model, batches.count, batch, after_batch, ranks, batches.with_predictions);
}

std::string predictions_note(const Predictions& p) {
  return format_message("{:.2f}% of the tokens right, exact answers: {:.1f}%", {100 * p.token_accuracy(), 100 * p.sequence_accuracy()});
}

}  // namespace ricci::apps
