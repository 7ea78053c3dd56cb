// GPT-2, Llama, Qwen2 and Qwen3 in the files of Hugging Face's transformers: config.json, weight names, tokenizer and chat template. Both
// libraries rotate columns i and i + k/2 of a head together, so no weight is permuted. Qwen2 has biases on queries, keys and values. Qwen3
// normalizes queries and keys.
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
// Reads a config.json of the hub (rope_theta, rope_scaling) or of transformers 5 (rope_parameters). A `dropout` below 0 means the file's
// rate; GPT-2's three rates must be equal. Errors, with `path` and the key: the architecture is unknown; a key is missing; a setting has no
// equivalent in ricci.
ModelConfig read_hf_config(const Json& json, const std::string& path, double dropout);

const char* hf_model_type(const ModelConfig& config);  // gpt2, llama, qwen2 or qwen3; error: a key has no equivalent
// config.json in the hub's form, readable by all versions. Error: as for hf_model_type.
std::string hf_config_json(const ModelConfig& config, const Marks& marks);
WeightMap weight_map(const ModelConfig& config, WeightFormat format = WeightFormat::hugging_face);

// The weights under their external names. Biases that this model lacks and GPT-2 needs are zeros. Error: as for hf_model_type.
NamedTensors export_weights(Model& model, WeightFormat format = WeightFormat::hugging_face);

// ---- Tokenizers
// Reads tokenizer.json, or vocab.json with merges.txt; null if these files are missing. config.json gives the tokens that begin and end a
// text, and generation_config.json can add more. Error: a file is unreadable.
std::shared_ptr<const Tokenizer> read_hf_tokenizer(const std::string& folder, const Json& config);

// tokenizer.json for transformers. Empty for kinds that transformers lacks: characters, bytes, an <eos> per line.
std::string hf_tokenizer_json(const Tokenizer* tokenizer);
// tokenizer_config.json. `chat_template`: the member with this name, as JSON, or empty.
std::string hf_tokenizer_config_json(const Tokenizer& tokenizer, const Marks& marks, int64_t context, const std::string& chat_template);

// The tokens that begin and end a text; by default <|endoftext|> or <eos>. The first end token ends a text; the others end an answer. Empty
// without a tokenizer.
Marks marks_to_export(const RunFolder& run);
void add_marks(Json& config, const Marks& marks);  // bos_token_id and eos_token_id

// ---- Chat templates
struct HfChatTemplate {
  ImportedTemplate kept = {};
  std::vector<std::string> named = {};  // the key `chat` of a run file: chatml, llama3, or an empty list
  std::string note = {};                // a line about the template, after a line end; empty without a template
};
// Reads chat_template.jinja and tokenizer_config.json; empty without a tokenizer. Errors: the template is not UTF-8, exceeds 16 MiB or has
// the wrong type.
HfChatTemplate read_hf_chat_template(const std::string& folder, const std::shared_ptr<const Tokenizer>& tokenizer);
struct KnownTemplate {
  std::string name = {};     // chatml, llama3, or empty
  bool adds_system = false;  // the template adds a missing system message
};
// The name of our template that writes the same conversations as this Jinja template, except for a system message. `bos_token`: the
// tokenizer's.
KnownTemplate known_template(const std::string& jinja, const std::string& bos_token);
// The template that transformers uses: the file, else the member. From a list, it uses `default`, else the first template. Error, with
// `origin`: the member has the wrong type.
std::string default_template(const ImportedTemplate& kept, const std::string& origin);
// The run's imported template, else its `chat` in Jinja, else empty.
ImportedTemplate template_to_export(const RunFolder& run);
// Writes one of our templates in Jinja. All text is in strings with JSON escapes. The Jinja template rejects roles other than system, user
// and assistant.
std::string to_jinja(const ChatTemplate& form);

// Writes a run folder for the model: config.yaml with its keys and no data, tokenizer.json if the tokenizer is not null, the chat template
// and model.safetensors. Returns lines about the run. Error: the folder already contains a model or checkpoints, or cannot be written.
std::string write_imported_run(
    const std::string& path, Model& model, const Tokenizer* tokenizer, const std::string& origin, const HfChatTemplate& chat = {});

}  // namespace ricci::apps
