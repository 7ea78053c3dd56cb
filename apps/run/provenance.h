// The record of a run in the metadata of its checkpoints and models: every key that the bits depend on, with its resolved value. A run that
// continues is compared with them and not with config.yaml: a user may have edited that file. They hold no path: texts, tokenizer and init
// are compared by content, so a project that was moved continues, and equal training in two folders gives equal files.
#pragma once
#include <string>

#include "apps/run/config.h"
#include "apps/run/train_config.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {

inline constexpr const char* kConfigKeys = "config";  // names in the metadata

std::string find_in(const Metadata& metadata, const char* name);  // empty if it is missing

// The keys that shape the model, or all that cannot change while a run continues, such as the seed.
enum class Compare { model, training };
// "config" has these keys with their resolved values, in YAML; "following" the model keys with derived values, as the user gave them;
// "tokenizer" a hash.
Metadata provenance(const TrainConfig& config, const Tokenizer* tokenizer, Compare keys);
// Under the name "config" or "following". Errors start with `source`: not YAML, an unknown key.
Settings settings_in(const Metadata& metadata, const char* name, const std::string& source = "metadata");
// The first key with a different value in these metadata, as "lr: 0.001, not 0.01", or a line about another tokenizer; empty if they
// agree. A key that only one of them has is not compared: the choice that makes it meaningful is.
std::string difference(const Metadata& was, const TrainConfig& config, const Tokenizer* tokenizer, Compare keys);
bool fits_tokenizer(const Metadata& metadata, const Tokenizer& tokenizer);  // true also if the metadata name none

}  // namespace ricci::apps
