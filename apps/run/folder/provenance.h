// What a model or a checkpoint was trained with, told in its file: a config.yaml or tokenizer.json that was edited since then is
// noticed, and not believed.
#pragma once
#include <functional>
#include <string>

#include "apps/run/config/train_config.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {

// For the metadata of model.safetensors: the keys that shape what the model computes, a line each; what was said of those whose values
// follow from others; and the tokenizer's hash, where there is one.
Metadata provenance_of_model(const TrainConfig& config, const Tokenizer* tokenizer);
// For that of a checkpoint: every key that may not change while a run goes on, the seed among them.
Metadata provenance_of_training(const TrainConfig& config, const Tokenizer* tokenizer);

// Whether the file was trained with this tokenizer; also true of one that does not tell.
bool tells_tokenizer(const SafetensorsFile& file, const Tokenizer& tokenizer);

// Compares a file with the config and the tokenizer that stand beside it: in the keys that shape the model, or in all that both
// tell of. Error: the first key that differs, or the tokenizer. A file that tells nothing is believed, and
// `warn` gets one line.
enum class Compare { model, training };
void check_provenance(const SafetensorsFile& file, const TrainConfig& config, const Tokenizer* tokenizer, Compare what,
    const std::function<void(const std::string& line)>& warn);

}  // namespace ricci::apps
