// The record of a run in the metadata of its checkpoints and models: every key that affects the bits of the weights, with its resolved
// value. A run that continues is compared with this record: a user may have edited config.yaml. The record contains no paths. Texts,
// tokenizer and init are compared by content, so a moved project can continue, and equal training runs in two folders give equal files.
#pragma once
#include <string>

#include "apps/run/config.h"
#include "apps/run/train_config.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {

inline constexpr const char* kConfigKeys = "config";  // names in the metadata

std::string find_in(const Metadata& metadata, const char* name);  // empty if the member is missing

// The keys that shape the model, or all keys that must not change when a run continues, such as the seed.
enum class Compare { model, training };
// The members: "config": these keys with resolved values, in YAML. "following": the model keys with derived values, as the user gave them.
// "tokenizer": a hash.
Metadata provenance(const TrainConfig& config, const Tokenizer* tokenizer, Compare keys);
// `name` is "config" or "following". Errors start with `source`: the text is not YAML, a key is unknown.
Settings settings_in(const Metadata& metadata, const char* name, const std::string& source = "metadata");
// The first different key, as in "lr: 0.001, not 0.01", or a line about a different tokenizer; empty if all agree. A key that only one side
// has is not compared, but the choice that enables it is.
std::string difference(const Metadata& was, const TrainConfig& config, const Tokenizer* tokenizer, Compare keys);
bool fits_tokenizer(const Metadata& metadata, const Tokenizer& tokenizer);  // also true if the metadata contains no tokenizer

}  // namespace ricci::apps
