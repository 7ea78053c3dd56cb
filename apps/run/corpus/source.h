// The files of a config as sources of tokens.
#pragma once
#include <string>
#include <vector>

#include "apps/run/config/train_config.h"
#include "data/shards/store.h"

namespace ricci::apps {

std::string found_or_given(const std::string& path);
// True where these are shards. Error: some are and some are not.
bool are_shards(const std::vector<std::string>& paths);

// `embedded` is the built-in corpus.
TextSource open_text(const std::vector<std::string>& paths);

// The files as the config reads them: a text, or documents. is_cut: the end of it is validation.
StoreSource source_of(const TrainConfig& config, const std::vector<std::string>& paths, bool is_cut);

// The names of a classifier's classes: as given, or the words that are labels in the data.
std::vector<std::string> labels_of(const TrainConfig& config);

}  // namespace ricci::apps
