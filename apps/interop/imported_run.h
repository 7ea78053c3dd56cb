// A run folder around weights that another program trained.
#pragma once
#include <string>

#include "data/tokenizers/tokenizer.h"
#include "models/model.h"

namespace ricci::apps {

// Makes the folder, which is named after its last part: config.yaml with the keys of the model, no data, as the text of its training
// is elsewhere, and defaults for the rest; tokenizer.json unless null; model.safetensors. Returns a line about it. `origin`: where the
// weights came from, for that line.
// Error: the folder holds a model or checkpoints already, or cannot be written.
std::string write_imported_run(const std::string& path, Model& model, const Tokenizer* tokenizer, const std::string& origin);

}  // namespace ricci::apps
