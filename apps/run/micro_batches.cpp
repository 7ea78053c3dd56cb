#include "apps/run/micro_batches.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "cuda/device/device.h"
#include "data/feeds/feed.h"
#include "data/feeds/sequence_stream.h"
#include "data/feeds/sorter.h"
#include "models/training/freeze.h"

namespace ricci::apps {

namespace {

Tensor tensor_of(const std::vector<int64_t>& ids_bc, const Shape& shape, Device device) {
  const Tensor t(shape, Dtype::i64);
  std::copy(ids_bc.begin(), ids_bc.end(), t.data<int64_t>());
  return to(t, device);
}

template <class Batches> std::unique_ptr<Feed> numbered(Batches batches, Range mine) {
  return std::make_unique<NumberedFeed<Batches>>(std::move(batches), mine);
}

// The feed that the data and the order of the config ask for.
std::unique_ptr<Feed> feed_of(const Corpus& corpus, const TrainConfig& config, Range mine) {
  const StepLayout layout = layout_of(config);
  if (is_sorting(config)) return numbered(SortingBatches(corpus.train, config.sorting.length, layout.sequences, config.seed), mine);
  if (is_shuffled(config)) {
    SequenceStream stream(corpus.sources, {.context = config.sequence_length(),
                                              .seed = config.seed,
                                              .shuffle_buffer = config.shuffle_buffer,
                                              .weights = config.weights,
                                              .whole_documents = is_classifier(config) || is_chat(config),
                                              .conversations = is_chat(config),
                                              .full_width = config.cuda_graph,
                                              .packs = config.pack == Pack::best});
    return std::make_unique<StreamFeed<SequenceStream>>(std::move(stream), mine, layout.micro_batches, layout.sequences);
  }
  if (config.order == Order::columns)
    return numbered(ColumnBatches(corpus.train, config.batch * config.accumulation, layout.sequences, config.sequence_length()), mine);
  return numbered(RandomCrops(corpus.train, layout.sequences, config.sequence_length(), config.seed), mine);
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

StepFeed::StepFeed(const Corpus& corpus, const TrainConfig& config, Range mine) : config_(config), feed_(feed_of(corpus, config, mine)) {}

void StepFeed::start(int64_t step, const std::string& place) {
  constexpr size_t kStepsAhead = 2;
  feed_->go_to(step, place);
  const auto make = [this, left = config_.steps - step]() mutable -> std::optional<StepData> {
    if (left-- <= 0) return {};
    return StepData{feed_->next(), feed_->place()};
  };
  thread_ = std::make_unique<Prefetch<StepData>>(make, kStepsAhead);
}

void StepFeed::read_ahead() {
  std::packaged_task<StepInput()> read([this] {
    std::optional<StepData> data = thread_->next();
    if (!data) fail("training data: there is no step after the last one");
    StepInput input{.place = std::move(data->place)};
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
