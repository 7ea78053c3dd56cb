#include "apps/run/corpus/step_feed.h"

#include <utility>

#include "apps/run/corpus/micro_batches.h"
#include "core/error.h"
#include "data/feeds/sequence_stream.h"
#include "data/feeds/sorter.h"
#include "data/feeds/text_batches.h"

namespace ricci::apps {
namespace {

constexpr size_t kStepsAhead = 2;

template <class Batches> std::unique_ptr<Feed> numbered(Batches batches, const StepLayout& layout) {
  return std::make_unique<NumberedFeed<Batches>>(std::move(batches), layout.micro_batches);
}

// The feed that the data and the order of the config ask for.
std::unique_ptr<Feed> feed_of(const Corpus& corpus, const TrainConfig& config) {
  const StepLayout layout = layout_of(config);
  if (is_sorting(config)) return numbered(SortingBatches(corpus.train, config.sorting.length, layout.sequences, config.seed), layout);
  if (is_shuffled(config)) {
    SequenceStream stream(corpus.sources, {.context = *config.context,
                                              .seed = config.seed,
                                              .shuffle_buffer = config.shuffle_buffer,
                                              .weights = config.weights,
                                              .whole_documents = is_classifier(config),
                                              .full_width = config.cuda_graph});
    return std::make_unique<StreamFeed<SequenceStream>>(std::move(stream), layout.micro_batches, layout.sequences);
  }
  if (config.order == Order::columns)
    return numbered(ColumnBatches(corpus.train, config.batch * config.accumulation, layout.sequences, *config.context), layout);
  return numbered(RandomCrops(corpus.train, layout.sequences, *config.context, config.seed), layout);
}

}  // namespace

StepFeed::StepFeed(const Corpus& corpus, const TrainConfig& config) : config_(config), feed_(feed_of(corpus, config)) {}

StepFeed::~StepFeed() = default;

void StepFeed::start(int64_t step, const std::string& place) {
  step_ = step;
  feed_->go_to(step, place);
  thread_ = std::make_unique<Prefetch<StepData>>([this] { return make(); }, kStepsAhead);
}

std::optional<StepData> StepFeed::make() {
  if (step_++ >= config_.steps) return {};
  StepData data;
  for (int64_t i = 0; i < layout_of(config_).micro_batches; ++i) data.batches.push_back(feed_->next());
  data.place = feed_->place();
  return data;
}

StepData StepFeed::next() {
  std::optional<StepData> data = thread_->next();
  if (!data) fail("training data: there is no step behind the last one");
  return std::move(*data);
}

}  // namespace ricci::apps
