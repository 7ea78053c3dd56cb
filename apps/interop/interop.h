// Models of other programs as run folders, and run folders as models of other programs.
//
// Folders as Hugging Face's transformers writes and reads them: config.json, model.safetensors or several files with an index,
// tokenizer.json or vocab.json with merges.txt. Exported weights have our checksum next to `format: pt`. The models are GPT-2,
// Llama, Qwen2 and Qwen3 (apps/interop/their_models.h).
#pragma once
#include <cstdint>
#include <string>

namespace ricci::apps {

struct ImportOptions {
  double dropout = -1;  // below 0 as in the folder
  bool without_tokenizer = false;
};

// Writes a run folder that ricci-eval and ricci-generate read and that `init` of ricci-train starts from. The tokenizer comes from
// the folder, if it has one. Returns lines about it.
// Errors: a config.json of another architecture or with a setting that no ricci model has; weights that are missing or misshapen; a
// tokenizer of another size than the vocabulary; a run folder that holds a model already. Nothing is written then.
std::string import_hugging_face(const std::string& folder, const std::string& run, const ImportOptions& options);

// Writes the model of a run, `which` as in RunFolder::load_model, as a folder that transformers loads, with its tokenizer unless
// transformers has none of its kind. Returns lines about it.
// Errors: a model that none of them can be; a folder that holds a model already.
std::string export_hugging_face(const std::string& run, const std::string& which, const std::string& folder);

// ---- The models of the Dispatcher paper's own repository (Cetoli 2021): a state_dict of its DispatcherModel or of its attention
// baseline TransformerModel, saved as safetensors. Names: transformer_encoder.layers.0.self_attn.linear_in.weight.

// Properties of the model that the weights do not show.
struct DispatcherImport {
  int64_t heads = 1;     // attention heads, as in the paper
  int64_t context = 0;   // 0 for the 2^levels positions that a dispatcher of the file reads
  double dropout = 0.2;  // as in the repository
};

// Writes a run folder as import_hugging_face does, without a tokenizer. Returns lines about it.
// Errors: neither of the two models; attention without a context; several heads of a dispatcher, which that code mixes up with
// positions; a tensor that is missing or misshapen.
std::string import_dispatcher(const std::string& file, const std::string& run, const DispatcherImport& options);

}  // namespace ricci::apps
