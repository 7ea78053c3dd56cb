// Folders as Hugging Face's transformers writes and reads them: config.json, model.safetensors or several files with an index,
// tokenizer.json or vocab.json with merges.txt.
#pragma once
#include <string>

namespace ricci::apps {

struct ImportOptions {
  double dropout = -1;  // of the model; below 0: that of the folder
  bool without_tokenizer = false;
};

// Writes a run folder that ricci-eval and ricci-generate read and that `init` of ricci-train starts from. The tokenizer is that of
// the folder, if it has one. Returns a line about it.
// Errors: those of config_of_gpt2 and load_gpt2; a tokenizer of another size than the vocabulary; a run folder that holds a model
// already. Nothing is written then.
std::string import_hugging_face(const std::string& folder, const std::string& run, const ImportOptions& options);

// Writes the model of a run, `which` as in RunFolder::load_model, as a folder that transformers loads, with its tokenizer unless
// transformers has none of its kind. Returns a line about it.
// Errors: a model that GPT-2 cannot be; a folder that holds a model already.
std::string export_hugging_face(const std::string& run, const std::string& which, const std::string& folder);

}  // namespace ricci::apps
