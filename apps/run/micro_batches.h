// From text to what models read: the batches of data/ as tensors on a device.
#pragma once
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "apps/run/corpus.h"
#include "apps/run/train_config.h"
#include "core/cpu/prefetch.h"
#include "data/feeds/feed.h"
#include "models/layers/inputs.h"
#include "models/planning/plan.h"

namespace ricci::apps {

MicroBatch micro_batch_of(const Batch& batch, Device device);

// The division of the sequences of a step. batch_invariant takes one sequence at a time, whatever the batch. Otherwise
// the order of sums would depend on it.
struct StepLayout {
  int64_t sequences;      // in a micro-batch
  int64_t micro_batches;  // in a step
};
StepLayout layout_of(const TrainConfig& config);

// The same for a plan of the step (models/planning/plan.h).
StepShape step_shape_of(const TrainConfig& config);

// The input of a step, on the device.
struct StepInput {
  std::vector<MicroBatch> micro_batches;
  std::string place;  // in the data after this step; empty if it follows from the number of the step
};

// The inputs of a training, step by step. A thread makes the batches while the step before is computed.
class StepFeed {
 public:
  // mine: the micro-batches of each step that are read. Errors: from the feed that the config asks for.
  StepFeed(const Corpus& corpus, const TrainConfig& config, Range mine);
  StepFeed(const StepFeed&) = delete;

  // Starts with the step of this number. A run that is resumed gives the place in the data that the step before it left. Error: the data do
  // not have this place.
  void start(int64_t step, const std::string& place);
  // The next step, in the order of their numbers. Errors: the data cannot be read.
  StepInput next();
  // Moves the next step to the device now, because a GPU that has to wait for its input stands idle. An error is thrown by next().
  void read_ahead();

 private:
  struct StepData {
    std::vector<Batch> batches;
    std::string place;
  };
  TrainConfig config_;
  Range mine_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<Prefetch<StepData>> thread_;
  std::future<StepInput> ahead_;  // the next step, or the error of reading it
};

}  // namespace ricci::apps
