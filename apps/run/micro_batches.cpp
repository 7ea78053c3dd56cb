#include "apps/run/micro_batches.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "cuda/device/device.h"
#include "data/feeds/feed.h"
#include "data/feeds/sequence_stream.h"
#include "models/training/freeze.h"

namespace ricci::apps {

namespace {

Tensor tensor_of(const std::vector<int64_t>& ids_bc, const Shape& shape, Device device) {
  const Tensor t(shape, Dtype::i64);
  std::copy(ids_bc.begin(), ids_bc.end(), t.data<int64_t>());
  return to(t, device);
}

RowKind row_kind(const TrainConfig& config) {
  if (config.pack == Pack::best) return RowKind::packed;
  return is_classifier(config) || has_mask(config) ? RowKind::whole : RowKind::cut;
}

// The feed that the data and the order of the config ask for.
std::unique_ptr<Feed> feed_of(const Corpus& corpus, const TrainConfig& config) {
  const auto [sequences, micro_batches] = layout_of(config);
  const int64_t context = config.sequence_length();
  if (is_shuffled(config))
    return std::make_unique<SequenceStream>(corpus.sources, StreamOptions{.context = context,
                                                                .batch = sequences,
                                                                .seed = config.seed,
                                                                .shuffle_buffer = config.shuffle_buffer,
                                                                .weights = config.weights,
                                                                .rows = row_kind(config),
                                                                .full_width = config.cuda_graph});
  if (config.order == Order::columns) return std::make_unique<ColumnBatches>(corpus.train, sequences * micro_batches, sequences, context);
  return std::make_unique<RandomCrops>(corpus.train, sequences, context, config.seed, micro_batches);
}

}  // namespace

MicroBatch micro_batch_of(const Batch& batch, Device device) {
  const Shape shape{batch.batch, batch.context};
  if (!batch.labels_b.empty())
    return {{tensor_of(batch.ids_bc, shape, device), tensor_of(batch.labels_b, {batch.batch}, device),
                tensor_of(batch.lengths_b, {batch.batch}, device)},
        batch.scored};
  return {{tensor_of(batch.ids_bc, shape, device), tensor_of(batch.targets_bc, shape, device)}, batch.scored};
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
    : config_(config), mine_(mine), feed_(feed_of(corpus, config)) {}

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

void StepFeed::read_ahead() {
  std::packaged_task<StepInput()> read([this] {
    std::optional<StepData> data = thread_->next();
    if (!data) fail("training data: there is no step after the last one");
    StepInput input{.micro_batches = {}, .place = std::move(data->place)};
    for (const Batch& batch : data->batches) input.micro_batches.push_back(micro_batch_of(batch, config_.device));
    return input;
  });
  ahead_ = read.get_future();
  read();
}

StepInput StepFeed::next() {
  if (!ahead_.valid()) read_ahead();
  return ahead_.get();
}

}  // namespace ricci::apps
