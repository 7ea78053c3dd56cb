// Multiple choice as lm-eval 0.4.13 counts it: a model chooses the continuation of a context with the largest log-probability.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/run/options.h"

namespace ricci::apps {

// A table or JSON with the share of questions that each run answers right: acc by the log-probability of a choice, acc_norm by it per
// character, acc_bytes per byte, each with its standard error. The file has a question per line, with the fields of HellaSwag, ARC or PIQA,
// written as the tasks of lm-eval write them, or {"context": ..., "choices": [...], "answer": 0}. A context loses tokens from the left if
// the model cannot read it whole. Errors name the line: other fields, fewer than two choices, no such answer, a choice longer than the
// model's context.
std::string evaluate_choices(
    const std::string& file, const std::vector<std::string>& runs, const ModelOptions& model, int64_t batch, bool as_json);

}  // namespace ricci::apps
