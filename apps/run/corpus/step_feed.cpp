#include "apps/run/corpus/step_feed.h"

#include <utility>

#include "apps/run/corpus/micro_batches.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

constexpr size_t kStepsAhead = 2;

std::variant<RandomCrops, ColumnBatches, SequenceStream, SortingBatches> order_of(const Corpus& corpus, const TrainConfig& config) {
  if (is_sorting(config)) return SortingBatches(corpus.train, config.sorting.length, layout_of(config).sequences, config.seed);
  if (is_shuffled(config))
    return SequenceStream(corpus.sources, {.context = *config.context,
                                              .seed = config.seed,
                                              .shuffle_buffer = config.shuffle_buffer,
                                              .weights = config.weights,
                                              .whole_documents = is_classifier(config),
                                              .full_width = config.cuda_graph});
  const int64_t sequences = layout_of(config).sequences;
  if (config.order == Order::columns) return ColumnBatches(corpus.train, config.batch * config.accumulation, sequences, *config.context);
  return RandomCrops(corpus.train, sequences, *config.context, config.seed);
}

}  // namespace

StepFeed::StepFeed(const Corpus& corpus, const TrainConfig& config) : config_(config), order_(order_of(corpus, config)) {}

StepFeed::~StepFeed() = default;

void StepFeed::start(int64_t step, const std::string& place) {
  step_ = step;
  if (auto* const stream = std::get_if<SequenceStream>(&order_); stream && step > 0) stream->go_to(place);
  thread_ = std::make_unique<Prefetch<StepData>>([this] { return make(); }, kStepsAhead);
}

std::optional<StepData> StepFeed::make() {
  if (step_ >= config_.steps) return {};
  StepData data;
  if (auto* const stream = std::get_if<SequenceStream>(&order_)) {
    data.batches = stream->next_step(layout_of(config_).micro_batches, layout_of(config_).sequences);
    data.place = stream->place();
  } else if (auto* const sorting = std::get_if<SortingBatches>(&order_)) {
    for (int64_t i = 0; i < layout_of(config_).micro_batches; ++i) data.batches.push_back(sorting->of_step(step_, i));
  } else if (auto* const columns = std::get_if<ColumnBatches>(&order_)) {
    data.batches = batches_of(*columns, config_, step_);
  } else {
    data.batches = batches_of(std::get<RandomCrops>(order_), config_, step_);
  }
  ++step_;
  return data;
}

StepData StepFeed::next() {
  std::optional<StepData> data = thread_->next();
  if (!data) fail("training data: there is no step behind the last one");
  return std::move(*data);
}

}  // namespace ricci::apps
