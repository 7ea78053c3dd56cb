// The tokenizer in a folder of Hugging Face's transformers, and the tokens that its configs name.
#pragma once
#include <memory>
#include <string>

#include "apps/interop/json_file.h"
#include "apps/terminal/table.h"
#include "data/tokenizers/chat.h"

namespace ricci::apps {

// Reads tokenizer.json, or vocab.json with merges.txt. Null if the folder has none. The model's config.json names the marks of the
// tokenizer; generation_config.json and tokenizer_config.json may complete them. Error: one of these files cannot be read.
std::shared_ptr<const Tokenizer> read_their_tokenizer(const std::string& folder, const JsonFile& config);

// tokenizer.json as transformers reads it. Empty where it has none for this tokenizer: none for characters, bytes, or an <eos> per line.
std::string their_tokenizer(const Tokenizer* tokenizer);
// tokenizer_config.json.
std::string tokenizer_config(const Tokenizer& tokenizer, int64_t context);

// A template of conversations in Jinja, as the key chat_template of other programs has it.
std::string chat_jinja(const ChatTemplate& form);

// The tokens that mark a text, for other programs: where the tokenizer has no such marks its <|endoftext|> or <eos> is both. A null
// tokenizer has none.
Marks text_marks(const Tokenizer* tokenizer);
// bos_token_id and eos_token_id of a config.json.
void add_marks(Object& config, const Marks& marks);

}  // namespace ricci::apps
