// The tokenizer in a folder of Hugging Face's transformers, and the tokens that its configs name.
#pragma once
#include <memory>
#include <string>

#include "apps/interop/json_file.h"
#include "apps/terminal/table.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {

// tokenizer.json, or vocab.json with merges.txt; null where the folder has none. Its marks are those of the config.json of the model, which
// generation_config.json and tokenizer_config.json beside it may complete. Error: the file's.
std::shared_ptr<const Tokenizer> read_their_tokenizer(const std::string& folder, const JsonFile& config);

// tokenizer.json as transformers reads it. Empty where it has none for this tokenizer: none for characters, bytes, or an <eos> per line.
std::string their_tokenizer(const Tokenizer* tokenizer);
// tokenizer_config.json.
std::string tokenizer_config(const Tokenizer& tokenizer, int64_t context);

// The tokens that mark a text, for other programs: where the tokenizer has no such marks its <|endoftext|> or <eos> is both. Null: none.
Marks text_marks(const Tokenizer* tokenizer);
// bos_token_id and eos_token_id of a config.json.
void add_marks(Object& config, const Marks& marks);

}  // namespace ricci::apps
