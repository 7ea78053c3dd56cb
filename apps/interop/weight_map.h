// Weights of other programs: their files, and a table of the parameter names in both programs.
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
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> files = {};  // by tensor name

  bool contains(const std::string& name) const { return files.contains(name); }
};
// Opens model.safetensors, or the files that model.safetensors.index.json lists, and verifies ricci's checksums, if any. Errors: neither
// exists; the index is damaged, or names a file outside the folder or a tensor that is not in its file.
WeightFiles open_weights(const std::string& folder);

// The names of a parameter in Hugging Face's safetensors, in GGUF, and in ricci:
//   {"h.{i}.attn.c_attn.weight", "blk.{i}.attn_qkv.weight", "blocks.{i}.mixer.qkv.weight", true}
// {i} is a block index. {q,k,v} means three tensors that are consecutive rows of our tensor; {gate,up} means two with equal row counts.
struct MappedName {
  const char *hf, *gguf, *ours;
  bool transposed = false;  // Hugging Face stores [in out], the others store [out in]
};

enum class WeightFormat : uint8_t { hugging_face, gguf };
struct WeightMap {
  const char* name;  // for messages: "GPT-2"
  std::span<const MappedName> names;
  std::span<const char* const> ignored;  // Hugging Face's tensors that are not parameters, such as masks
  std::string prefix;                    // begins all Hugging Face names except lm_head.weight
  int64_t key_rows;                      // row count of the second and the third part in a tensor of three parts
  WeightFormat format;
};

// Fills every parameter of the model from the files. Errors, with the tensor name: it is missing, has the wrong shape, or is neither a
// parameter nor ignored.
void load_mapped(Model& model, const WeightMap& map, const WeightFiles& files);

// The parameters in f32 on the CPU, with the names and layouts of the other program. Error: a parameter has no external name.
NamedTensors to_external(Model& model, const WeightMap& map);

}  // namespace ricci::apps
