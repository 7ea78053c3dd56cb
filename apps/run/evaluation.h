// Evaluations of a run: the batches, the scores over them, and the output of ricci-eval. As the feed of
// the training, batches and scores are chosen once, by the kind of data and model.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "apps/run/train_config.h"
#include "apps/terminal/table.h"
#include "core/json.h"
#include "data/feeds/feed.h"
#include "data/shards/tokens.h"
#include "data/text/text.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {

struct EvaluationBatches {
  using Score = Evaluation(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch, Ranks& ranks);

  // From Windows or DocumentBatches.
  template <class Batches>
  requires requires(const Batches& each) { each.batches(); }
  EvaluationBatches(const Batches& batches, int64_t context = 0, Score* score = ricci::evaluate, std::optional<int64_t> stride = {})
      : batch_at([batches](int64_t index) { return batches.at(index); }),
        count(batches.batches()),
        sequences(batches.batch()),
        context(context),
        stride(stride),
        score(score) {}

  std::function<Batch(int64_t index)> batch_at;
  int64_t count, sequences, context;  // batches; sequences in each but the last; tokens of a sequence
  std::optional<int64_t> stride;      // tokens between windows, if there are windows
  Score* score;
};

// Windows of the tokens, scored from the config's eval_from on. For a classifier, and for data with a mask, whole documents, which have no
// use for the stride. A text that is shorter than a window is one window. Error: no position is left to score.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& tokens, int64_t batch, int64_t context, int64_t stride);

// For the evaluations of a training: eval_batches limits the number of batches.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& validation);

// Over all batches, shared by the ranks.
Evaluation evaluate(
    const Model& model, const EvaluationBatches& batches, Device device, const AfterBatch& after_batch = {}, Ranks& ranks = Ranks::alone());

struct ScoredRun {
  std::string run, text;          // names
  int64_t context = 0;            // tokens that the model reads at a time
  std::optional<int64_t> stride;  // tokens between windows, if there are windows
  std::string context_note;       // RunFolder::context_note
  Evaluation result;
  std::optional<TextSize> size;           // only of plain text that is scored as a whole
  bool has_words = true;                  // tokens are words or parts of words: the line has the perplexity of a word
  int64_t from = 0;                       // first position of a window that is scored
  std::vector<std::string> classes = {};  // names, of a classifier that has some
};

// The text, and the numbers in a second line.
std::string line_of(const ScoredRun& scored);
// A line about predictions: an answer is exact if every token that counts in its document is predicted right from the
// true tokens before it. Trainings print it, too.
std::string predictions_note(const Predictions& predictions);
// One run as its lines; of several a table for each text with a row per run, and then the lines of each classifier. Ends without a line
// end.
std::string text_of(std::span<const ScoredRun> scored);
// A list with an object per run, classifiers last. What is not finite is null.
std::string json_of(std::span<const ScoredRun> scored);
// The mean loss of a classifier, accuracy, macro precision, recall and F1, and the counts: for each class a list that counts its
// predictions.
Json scores_of(const Evaluation& classes);

}  // namespace ricci::apps
