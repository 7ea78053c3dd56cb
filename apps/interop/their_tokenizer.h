// The tokenizer in a folder of Hugging Face's transformers, and the tokens that its configs name.
#pragma once
#include <memory>
#include <string>

#include "apps/interop/foreign_model.h"
#include "apps/run/run.h"
#include "core/json.h"
#include "data/tokenizers/chat.h"

namespace ricci::apps {

// Reads tokenizer.json, or vocab.json with merges.txt. Returns null if the folder has none. The model's config.json names the marks of the
// tokenizer; generation_config.json and tokenizer_config.json may complete them. Error: one of these files cannot be read.
std::shared_ptr<const Tokenizer> read_their_tokenizer(const std::string& folder, const Json& config);

// The text of tokenizer.json as transformers reads it. It is empty for characters, bytes and an <eos> per line, which transformers lacks.
std::string their_tokenizer(const Tokenizer* tokenizer);
// The text of tokenizer_config.json. `member` is its member chat_template, as JSON, or empty.
std::string tokenizer_config(const Tokenizer& tokenizer, const Marks& marks, int64_t context, const std::string& member);

// ---- Templates of conversations
// The template that transformers uses if none is asked for by its name: the file, else the member. A list has one named default, or its
// first counts. Empty if there is none. Error: the member, which is from `origin`, is neither text nor such a list.
std::string chosen_template(const ImportedTemplate& kept, const std::string& origin);
// Reads chat_template.jinja and the member chat_template of tokenizer_config.json. They are left out without a tokenizer. Errors: not
// UTF-8, more than 16 MiB, a member of another type.
TheirChat read_their_chat(const std::string& folder, const std::shared_ptr<const Tokenizer>& tokenizer);

// The template that a run was imported with, or `chat` of the run in Jinja as chat_template.jinja; empty if it has neither.
ImportedTemplate template_of(const RunFolder& run);

// The template in Jinja. All text is in its strings, with the escapes of JSON. It rejects roles other than system, user and assistant.
std::string chat_jinja(const ChatTemplate& form);

// The tokens that mark a text, for other programs: if the tokenizer has no such marks, its <|endoftext|> or <eos> is both. The first of
// the ends ends a text, and the next one an answer, if the template of the run has another token for that. All are empty without a
// tokenizer.
Marks marks_of(const RunFolder& run);
// Adds bos_token_id and eos_token_id to a config.json.
void add_marks(Json& config, const Marks& marks);

}  // namespace ricci::apps
