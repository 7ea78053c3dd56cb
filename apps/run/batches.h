// From the tokens of a run to a model's input: batches of data/ as tensors on a device, for training steps and for evaluations. data/ and
// models/ do not know each other, because a model can be used without texts, so the two meet here.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/corpus.h"
#include "apps/run/train_config.h"
#include "core/cpu/prefetch.h"
#include "data/feeds/feed.h"
#include "models/inference/evaluation.h"
#include "models/layers/inputs.h"
#include "models/planning/plan.h"

namespace ricci::apps {

MicroBatch micro_batch_of(const Batch& batch, Device device);

// The division of the sequences of a step. With batch_invariant each is computed separately, because otherwise the order of sums would
// depend on the batch.
struct StepLayout {
  int64_t sequences;      // in a micro-batch
  int64_t micro_batches;  // in a step
};
StepLayout layout_of(const TrainConfig& config);
StepShape step_shape_of(const TrainConfig& config);  // for a plan of the step (models/planning/plan.h)

// The input of a step, on the device.
struct StepInput {
  std::vector<MicroBatch> micro_batches;
  std::string place;  // in the data after this step; empty if it follows from the number of the step
};

// The inputs of a training, step by step. A thread prepares the next batches during a step, because otherwise each step would wait for
// them.
class StepFeed {
 public:
  // mine: the micro-batches of each step that this rank computes.
  StepFeed(const Corpus& corpus, const TrainConfig& config, Range mine);
  StepFeed(const StepFeed&) = delete;

  // Starts at this step. `place` is the place in the data that the step before it left. Error: the data do not have this place.
  void start(int64_t step, const std::string& place);
  // The next step. Error: the data cannot be read.
  StepInput next();

 private:
  struct StepData {
    std::vector<Batch> batches;
    std::string place;
  };
  TrainConfig config_;
  Range mine_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<Prefetch<StepData>> thread_;
};

// ---- Evaluations
struct EvaluationBatches {
  // From Windows or DocumentBatches.
  template <class Batches>
  requires requires(const Batches& each) { each.batches(); }
  EvaluationBatches(const Batches& batches, int64_t context = 0, bool with_predictions = false, std::optional<int64_t> stride = {})
      : batch_at([batches](int64_t index) { return batches.at(index); }),
        count(batches.batches()),
        sequences(batches.batch()),
        context(context),
        stride(stride),
        with_predictions(with_predictions) {}

  std::function<Batch(int64_t index)> batch_at;
  int64_t count, sequences, context;  // batches; sequences in each but the last; tokens of a sequence
  std::optional<int64_t> stride;      // tokens between windows, if there are windows
  bool with_predictions;              // for answers
};

// Windows of the tokens, scored from position eval_from of each window. A classifier and data with a mask are scored by whole documents,
// because their losses belong to documents. A text shorter than a window is one window. Error: no position is left to score.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& tokens, int64_t batch, int64_t context, int64_t stride);
// For the evaluations during a training: at most eval_batches.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& validation);

// The loss over all batches, shared by the ranks.
Evaluation evaluate(
    const Model& model, const EvaluationBatches& batches, Device device, const AfterBatch& after_batch = {}, Ranks& ranks = Ranks::alone());

// "97.10% of the tokens right, exact answers: 81.0%". An answer is exact if each of its tokens is predicted from the true tokens before it.
std::string predictions_note(const Predictions& predictions);

}  // namespace ricci::apps
