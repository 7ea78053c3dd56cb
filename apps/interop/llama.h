// Llama, Qwen2 and Qwen3 in the format of Hugging Face: one layout of weights, model.layers.0.self_attn.q_proj.weight. Qwen2 has biases on
// queries, keys and values, Qwen3 norms on queries and keys. Halves of a head turn there as here, so nothing is permuted.
#pragma once
#include <string>
#include <string_view>

#include "apps/interop/foreign_model.h"
#include "core/json/file.h"

namespace ricci::apps {

// True for llama, qwen2 and qwen3.
bool is_llama(std::string_view model_type);

// The model that a config.json with such a model_type describes, as files on the hub have it (rope_theta, rope_scaling) or as
// transformers 5 writes it (rope_parameters). A `dropout` below 0 takes attention_dropout of the file. Errors name the file and the key
// that no ricci model has.
ModelConfig config_of_llama(const JsonFile& json, double dropout);

// Returns llama, qwen2 or qwen3. The error for a model that none of them can be names the key.
const char* llama_type(const ModelConfig& config);
Architecture llama_rows(const ModelConfig& config);
// config.json in the form of the hub, which all versions read. Error: as llama_type.
std::string llama_config_json(const ModelConfig& config, const Marks& marks);

}  // namespace ricci::apps
