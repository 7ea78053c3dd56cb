// Parameters that a training leaves as they are (`freeze` in a run file).
#pragma once
#include <string>
#include <vector>

#include "models/model.h"

namespace ricci::apps {

// Whether the path is the pattern, or starts with it up to a dot: tok, blocks.0.fc, blocks.*.ln1. An asterisk stands for any one part
// between dots.
bool fits_path(const std::string& pattern, const std::string& path);

// Marks every parameter whose path fits one of the patterns. Errors: a pattern that fits no parameter, with the nearest that does;
// nothing is left to train.
void freeze_parameters(Model& model, const std::vector<std::string>& patterns);

}  // namespace ricci::apps
