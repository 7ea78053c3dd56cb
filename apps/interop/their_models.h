// GPT-2, Llama, Qwen2 and Qwen3 as Hugging Face's transformers has them: config.json, and the names of the weights, which are
// transformer.h.0.attn.c_attn.weight in GPT-2 and model.layers.0.self_attn.q_proj.weight in the others. Qwen2 has biases on queries, keys
// and values, Qwen3 norms on queries and keys. The halves of a head turn there as here, so nothing is permuted.
#pragma once
#include <string>

#include "apps/interop/foreign_model.h"
#include "core/json.h"

namespace ricci::apps {

// The model that a config.json describes, as files on the hub have it (rope_theta, rope_scaling) or as transformers 5 writes it
// (rope_parameters). A `dropout` below 0 takes the rate of the file; GPT-2 has three there, which must be equal. Errors name the file at
// `path` and the key: another architecture, a missing key, a setting that no ricci model has.
ModelConfig config_of_theirs(const Json& json, const std::string& path, double dropout);

// Returns gpt2, llama, qwen2 or qwen3. The error for a model that none of them can be names the key.
const char* their_type(const ModelConfig& config);
// config.json in the form of the hub, which all versions read. Error: as their_type.
std::string their_config(const ModelConfig& config, const Marks& marks);
Architecture their_architecture(const ModelConfig& config);

// The model with all biases that GPT-2 has; the missing ones are zeros. Error: as their_type.
Model with_gpt2_biases(Model& model);
// The weights under their names, with these biases for GPT-2.
NamedTensors their_weights(Model& model);

}  // namespace ricci::apps
