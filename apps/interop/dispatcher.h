// The models of the Dispatcher paper's own repository (Cetoli 2021): a state_dict of its DispatcherModel or of its attention
// baseline TransformerModel, saved as safetensors. Names: transformer_encoder.layers.0.self_attn.linear_in.weight.
#pragma once
#include <cstdint>
#include <string>

namespace ricci::apps {

// What the weights do not tell.
struct DispatcherImport {
  int64_t heads = 1;     // of attention, as in the paper
  int64_t context = 0;   // 0: the 2^levels positions that a dispatcher of the file hears
  double dropout = 0.2;  // that of the repository
};

// Writes a run folder as import_hugging_face does, without a tokenizer. Returns a line about it.
// Errors: neither of the two models; attention without a context; several heads of a dispatcher, which that code mixes up with
// positions; a tensor that is missing or misshapen.
std::string import_dispatcher(const std::string& file, const std::string& run, const DispatcherImport& options);

}  // namespace ricci::apps
