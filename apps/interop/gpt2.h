// GPT-2 as Hugging Face's transformers writes it: config.json and weights named transformer.h.0.attn.c_attn.weight.
#pragma once
#include <string>

#include "apps/interop/json_file.h"
#include "apps/interop/rows.h"
#include "models/model.h"

namespace ricci::apps {

// The rows, with the prefix that the names in these files have.
Architecture gpt2_of(const WeightFiles& files);
// The rows for files that are written.
Architecture gpt2();

// The model that a config.json describes. `dropout`: the one rate that ricci has; where it is below 0 the three rates of the file
// must be one. Errors name the file and the key: another architecture, what a ricci model cannot do, three rates.
ModelConfig config_of_gpt2(const JsonFile& config, double dropout);

// The weights of the folder in the model. A tied output map may stand in the files; then it must be the embedding table.
void load_gpt2(Model& model, const WeightFiles& files);

// config.json of such a model. Error: names the key of a model that GPT-2 cannot be.
std::string gpt2_config_json(const ModelConfig& config, int64_t end_of_text);
// The weights under their names. Biases that the model does without are zeros.
std::vector<std::pair<std::string, Tensor>> gpt2_weights(Model& model);

}  // namespace ricci::apps
