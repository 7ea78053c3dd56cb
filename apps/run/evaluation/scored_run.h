// What ricci-eval tells of a run: as a line, as a row of a table, as JSON.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/text/text_size.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {

struct ScoredRun {
  std::string run, text;          // names
  int64_t context = 0;            // tokens that the model reads at a time
  std::optional<int64_t> stride;  // tokens between windows; nothing: there are no windows
  std::string context_note;       // RunFolder::context_note
  Evaluation result;
  std::optional<TextSize> size;  // of the text; nothing: it is no plain text, or not scored as a whole
  int64_t from = 0;              // first position of a window that is scored
};

// A run of a classifier.
struct ScoredClassifier {
  std::string run, text;
  int64_t context = 0;
  std::string context_note;
  ClassEvaluation result;
};

std::string line_of(const ScoredRun& scored);
std::string line_of(const ScoredClassifier& scored);
// What such a line and that of an evaluation while training say of predictions.
std::string predictions_note(const Predictions& predictions);
// A row per run under a row of names. Ends without a line end.
std::string table_of(std::span<const ScoredRun> scored);
// A list with an object per run, classifiers last. What is not finite is null.
std::string json_of(std::span<const ScoredRun> scored, std::span<const ScoredClassifier> classifiers = {});

// On one line: the mean loss, accuracy, macro precision, recall and F1, and the counts: a list per class, in which predictions are
// counted.
std::string json_of(const ClassEvaluation& scores);

}  // namespace ricci::apps
