// The batches of a training, step by step, made by a thread of its own while the step before is computed.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config/train_config.h"
#include "apps/run/corpus/corpus.h"
#include "core/cpu/prefetch.h"
#include "data/feeds/feed.h"

namespace ricci::apps {

struct StepData {
  std::vector<Batch> batches;
  std::string place;  // in the data behind this step; empty where the number of the step tells it
};

class StepFeed {
 public:
  // Errors: those of the feed that the config asks for.
  StepFeed(const Corpus& corpus, const TrainConfig& config);
  ~StepFeed();

  // Starts with the step of this number; place: that of the step before it, in a run that goes on. Error: there is no such place.
  void start(int64_t step, const std::string& place);
  // The next step, in the order of their numbers. Errors: those of reading the data.
  StepData next();

 private:
  std::optional<StepData> make();
  TrainConfig config_;
  int64_t step_ = 0;  // the next to be made
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<Prefetch<StepData>> thread_;
};

}  // namespace ricci::apps
