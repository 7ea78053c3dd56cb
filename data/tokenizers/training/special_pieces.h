// What the vocabularies that are trained here have in common.
#pragma once
#include <string>
#include <vector>

#include "data/tokenizers/added_tokens.h"
#include "data/tokenizers/training/training.h"

namespace ricci {

// The special pieces that a vocabulary begins with, each once: those of its kind, then those that were asked for.
std::vector<std::string> special_pieces(const std::vector<std::string>& of_kind, const std::vector<std::string>& asked);

// They are found in texts as they are written; their ids are their places.
std::vector<AddedToken> as_added(const std::vector<std::string>& special);

// Error: a vocabulary of this size has no place for the pieces that it begins with, or is too large.
void check_size(const char* who, const TrainingOptions& options, size_t least);

}  // namespace ricci
