// tokenizer.json files: those of Hugging Face's tokenizers, and ricci's own for what they cannot describe.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/tokenizers/tokenizer.h"

namespace ricci {

class JsonValue;

// An object of pieces and their ids, as vocab.json files are. Error: an id that is no integer.
std::vector<std::pair<std::string, int64_t>> pieces_of(const JsonValue& object);

// The same tokenizer with one more piece at the end of its vocabulary, found in texts as it is written. Error: a kind whose
// vocabulary has no written pieces.
std::shared_ptr<const Tokenizer> with_added_piece(const Tokenizer& tokenizer, const std::string& piece);

}  // namespace ricci
