// Multiple choice, scored as in lm-eval 0.4.13. A model chooses the continuation with the largest log-probability.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/run/options.h"

namespace ricci::apps {

// Returns a table or JSON with the fraction of questions that each run answers correctly, with its standard error. Choices are ranked by
// log-probability: total (acc), per character (acc_norm) or per byte (acc_bytes). Each line of the file is a question with the fields of
// HellaSwag, ARC or PIQA, or {"context": ..., "choices": [...], "answer": 0}. Questions become texts as in lm-eval's tasks. A context that
// is too long is truncated on the left. Errors, with the line: the fields are unknown, a question has fewer than two choices, the answer is
// out of range, a choice is longer than the model's context.
std::string evaluate_choices(
    const std::string& file, const std::vector<std::string>& runs, const ModelOptions& model, int64_t batch, bool as_json);

}  // namespace ricci::apps
