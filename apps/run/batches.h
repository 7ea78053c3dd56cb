// Batches for training steps and evaluations, from the tokens of a run.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/corpus.h"
#include "apps/run/train_config.h"
#include "data/feeds/evaluation.h"
#include "data/feeds/feed.h"
#include "models/inference/evaluation.h"
#include "models/planning/plan.h"

namespace ricci::apps {

StepShape step_shape_of(const TrainConfig& config);  // for a plan of the step (models/planning/plan.h)
int64_t memory_of(Device device);                    // bytes that a process can use
// Plans a step of one of `ranks` processes. Error: the step needs more than `memory` bytes; the message gives the largest batch that fits.
void check_step(const TrainConfig& config, const ModelConfig& model, int64_t memory, int64_t ranks = 1);

// ---- Training
std::unique_ptr<Feed> make_feed(const Corpus& corpus, const TrainConfig& config);

// Reads this rank's micro-batches (`mine`) of the next step on the CPU. Returns them with Feed::place(), the position after the step.
// Error: the data is unreadable.
std::pair<std::vector<Batch>, std::string> read_step(Feed& feed, const TrainConfig& config, Range mine);

// ---- Evaluations
// Windows of the tokens, each scored from position eval_from; for a classifier or data with a mask, documents instead. A text shorter than
// a window is one window. Error: no position is left to score.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& tokens, int64_t batch, int64_t context, int64_t stride);
// For evaluations during training: at most eval_batches.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& validation);

// Computes the loss over all batches, divided among the ranks, unless stop() ends it early (models/inference/evaluation.h).
Evaluation evaluate(const Model& model, const EvaluationBatches& batches, Device device, const AfterBatch& after_batch = {},
    Ranks& ranks = Ranks::alone(), bool (*stop)() = nullptr);

// "97.10% of the tokens right, exact answers: 81.0%". An answer is exact if each token is predicted from the true tokens before it.
std::string predictions_note(const Predictions& predictions);
// The fraction of targets that are the tokenizer's unknown_id().
double unknown_share(const EvaluationBatches& batches, const Tokenizer& tokenizer);
std::string unknown_note(double share);  // ", 25.3% <unk>", or empty

}  // namespace ricci::apps
