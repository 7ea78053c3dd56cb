// From the tokens of a run to its batches, for training steps and for evaluations.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/run/corpus.h"
#include "apps/run/train_config.h"
#include "data/feeds/evaluation.h"
#include "data/feeds/feed.h"
#include "models/inference/evaluation.h"
#include "models/planning/plan.h"

namespace ricci::apps {

// The sequences of a step. With batch_invariant each is a micro-batch, so the order of sums does not depend on the batch.
struct StepLayout {
  int64_t sequences;      // in a micro-batch
  int64_t micro_batches;  // in a step
};
StepLayout layout_of(const TrainConfig& config);
StepShape step_shape_of(const TrainConfig& config);  // for a plan of the step (models/planning/plan.h)

// ---- Training
std::unique_ptr<Feed> make_feed(const Corpus& corpus, const TrainConfig& config);

// The data of a training step.
struct StepBatches {
  std::vector<Batch> micro_batches;  // the share of this rank, on the CPU
  std::string place;                 // Feed::place() after this step
};
// The next step. mine: the micro-batches of a step that this rank computes. Error: the data cannot be read.
StepBatches read_step(Feed& feed, const TrainConfig& config, Range mine);

// ---- Evaluations
// Windows of the tokens, scored from position eval_from of each window; for a classifier and data with a mask whole documents. A text
// shorter than a window is one window. Error: no position is left to score.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& tokens, int64_t batch, int64_t context, int64_t stride);
// For the evaluations during training: at most eval_batches.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& validation);

// The loss over all batches, shared by the ranks.
Evaluation evaluate(
    const Model& model, const EvaluationBatches& batches, Device device, const AfterBatch& after_batch = {}, Ranks& ranks = Ranks::alone());

// "97.10% of the tokens right, exact answers: 81.0%". An answer is exact if each of its tokens is predicted from the true tokens before it.
std::string predictions_note(const Predictions& predictions);
// The share of targets that are the tokenizer's unknown_id().
double unknown_share(const EvaluationBatches& batches, const Tokenizer& tokenizer);
std::string unknown_note(double share);  // ", 25.3% <unk>"; empty without any

}  // namespace ricci::apps
