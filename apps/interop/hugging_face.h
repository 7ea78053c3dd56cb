// GPT-2, Llama, Qwen2 and Qwen3 in the files of Hugging Face's transformers: config.json, the names of the weights, the tokenizer, and the
// template of conversations. Heads rotate by halves in both programs, so no weight is permuted; Qwen2 has biases on queries, keys and
// values, Qwen3 norms on queries and keys.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/interop/weight_map.h"
#include "apps/run/imported_template.h"
#include "apps/run/run_folder.h"
#include "core/json.h"
#include "data/tokenizers/chat.h"

namespace ricci::apps {

// ---- Models
// From a config.json as files on the hub have it (rope_theta, rope_scaling) or as transformers 5 writes it (rope_parameters). A `dropout`
// below 0 takes the rate of the file; GPT-2 has three there that must be equal. Errors name the file at `path` and the key: an unknown
// architecture, a missing key, a setting that no ricci model has.
ModelConfig read_hf_config(const Json& json, const std::string& path, double dropout);

const char* hf_model_type(const ModelConfig& config);  // gpt2, llama, qwen2 or qwen3; error: the key that makes the model none of them
// config.json as the hub has it: all versions read that form. Error: as hf_model_type.
std::string hf_config_json(const ModelConfig& config, const Marks& marks);
WeightMap weight_map(const ModelConfig& config, WeightFormat format = WeightFormat::hugging_face);

// The weights under their external names. The biases that GPT-2 has and this model lacks are zeros. Error: as hf_model_type.
NamedTensors export_weights(Model& model, WeightFormat format = WeightFormat::hugging_face);

// ---- Tokenizers
// From tokenizer.json, or vocab.json with merges.txt; null without them. The model's config.json names the marks of a text;
// generation_config.json can complete them. Error: one of these files cannot be read.
std::shared_ptr<const Tokenizer> read_hf_tokenizer(const std::string& folder, const Json& config);

// tokenizer.json as transformers reads it. Empty for characters, bytes and an <eos> per line: transformers lacks them.
std::string hf_tokenizer_json(const Tokenizer* tokenizer);
// tokenizer_config.json. `chat_template` is its member of that name, as JSON, or empty.
std::string hf_tokenizer_config_json(const Tokenizer& tokenizer, const Marks& marks, int64_t context, const std::string& chat_template);

// Marks default to <|endoftext|> or <eos>. The first end ends a text, a different one an answer. Empty without a tokenizer.
Marks marks_to_export(const RunFolder& run);
void add_marks(Json& config, const Marks& marks);  // bos_token_id and eos_token_id

// ---- Templates of conversations
struct HfChatTemplate {
  ImportedTemplate kept = {};
  std::vector<std::string> named = {};  // the key `chat` of a run file: chatml or llama3 if the template is one of them, else an empty list
  std::string note = {};                // a line about them that begins with a line end; empty without a template
};
// From chat_template.jinja and tokenizer_config.json; empty without a tokenizer. Errors: not UTF-8, more than 16 MiB, a wrong type.
HfChatTemplate read_hf_chat_template(const std::string& folder, const std::shared_ptr<const Tokenizer>& tokenizer);
struct KnownTemplate {
  std::string name = {};     // chatml, llama3, or empty
  bool adds_system = false;  // the template begins a conversation without a system message with one
};
// The name of a template in Jinja if it writes conversations as ours of this name, up to a system message. `bos_token` is the tokenizer's.
KnownTemplate known_template(const std::string& jinja, const std::string& bos_token);
// The template that transformers uses: the file, else the member, of a list `default`, else the first. Error, with `origin`: a wrong type.
std::string default_template(const ImportedTemplate& kept, const std::string& origin);
// The template that a run was imported with, else the run's `chat` in Jinja. Empty if it has neither.
ImportedTemplate template_to_export(const RunFolder& run);
// All text is in strings, with the escapes of JSON. The template rejects roles other than system, user and assistant.
std::string to_jinja(const ChatTemplate& form);

// Writes a run folder for the model: config.yaml with its keys and no data; tokenizer.json unless null; the template of conversations;
// model.safetensors. Returns lines about it. Error: the folder already holds a model or checkpoints, or cannot be written.
std::string write_imported_run(
    const std::string& path, Model& model, const Tokenizer* tokenizer, const std::string& origin, const HfChatTemplate& chat = {});

}  // namespace ricci::apps
