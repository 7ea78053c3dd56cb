// Training and validation text out of one corpus.
#pragma once
#include "data/text/text_source.h"

namespace ricci {

struct Split {
  TextSource train;
  TextSource validation;
};

// The first floor(train_fraction * characters) characters for training, the rest for validation, as nanoGPT cuts.
// Reads the text twice as a stream, once for all with a cache folder (data/text/text_cache.h). Characters are counted by their
// first bytes, so any text can be cut.
// Errors: a fraction outside 0 to 1, a text too short to leave a character to each part.
Split split_by_characters(const TextSource& text, double train_fraction = 0.9, const std::string& cache_folder = "");

}  // namespace ricci
