// Weights that a different program trained: their files, and a table of the names of the parameters in both programs.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/files/safetensors.h"
#include "models/model.h"

namespace ricci::apps {

struct WeightFiles {
  std::string folder;                                                        // for messages
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> files = {};  // by the names of their tensors

  bool contains(const std::string& name) const { return files.contains(name); }
};
// Opens model.safetensors, or the files that model.safetensors.index.json lists, and verifies a checksum of ricci if a file has one.
// Errors: neither exists; an index that is damaged, or that names a file outside the folder or a tensor that is not in its file.
WeightFiles open_weights(const std::string& folder);

// A parameter in safetensors of Hugging Face, in GGUF, and here:
//   {"h.{i}.attn.c_attn.weight", "blk.{i}.attn_qkv.weight", "blocks.{i}.mixer.qkv.weight", true}
// {i} is the number of a block. {q,k,v} stands for three tensors, the rows of ours one after the other; {gate,up} for two with equal rows.
struct MappedName {
  const char *hf, *gguf, *ours;
  bool transposed = false;  // Hugging Face's is (in, out); the others are (out, in)
};

enum class WeightFormat : uint8_t { hugging_face, gguf };
struct WeightMap {
  const char* name;  // for messages: "GPT-2"
  std::span<const MappedName> names;
  std::span<const char* const> ignored;  // tensors of Hugging Face that are not parameters, such as masks
  std::string prefix;                    // before all names of Hugging Face but lm_head.weight
  int64_t key_rows;                      // for a tensor in three parts: the rows of the second, and of the third
  WeightFormat format;
};

// Fills every parameter of the model from the files. Errors name a tensor that is missing, misshapen, or neither a parameter nor ignored.
void load_mapped(Model& model, const WeightMap& map, const WeightFiles& files);

// On the CPU and in f32, as the other program names and stores them. Error: a parameter without a name there.
NamedTensors to_external(Model& model, const WeightMap& map);

}  // namespace ricci::apps
