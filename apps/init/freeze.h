// Parameters that a training leaves as they are (`freeze` in a run file).
#pragma once
#include <string>
#include <vector>

#include "models/model.h"

namespace ricci::apps {

// Marks every parameter whose path is one of the patterns, or starts with one up to a dot: tok, blocks.0.fc, blocks.*.ln1. An
// asterisk stands for any one part between dots. Errors: a pattern that fits no parameter, with the nearest that does; nothing is left
// to train.
void freeze_parameters(Model& model, const std::vector<std::string>& patterns);

}  // namespace ricci::apps
