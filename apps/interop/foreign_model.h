// Models that other programs trained: their files of weights, the names of their parameters, and a run folder around them.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/run.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"
#include "models/model.h"

namespace ricci::apps {

// The files of weights that another program wrote, by the names of their tensors.
struct WeightFiles {
  std::string path;  // the folder or the file, for messages
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> files = {};

  bool contains(const std::string& name) const { return files.contains(name); }
  const SafetensorsFile& file_of(const std::string& name) const { return *files.at(name); }
};
// A file; or a folder with model.safetensors, or with the files that model.safetensors.index.json lists. Our checksum is verified if it is
// there. Errors: neither is there; an index that is damaged, or that names a file outside the folder or a tensor that is not in its file.
WeightFiles open_weights(const std::string& path);

// A parameter as it is called there and here, in a table of an architecture:
//   {"h.{i}.attn.c_attn.weight", "blocks.{i}.mixer.qkv.weight", true}
// {i} is the number of a block, the same on both sides. Of a name with {q,k,v} the rows of three tensors of theirs are one after
// another in ours; {gate,up} are two with equal rows.
struct Row {
  const char *theirs, *ours;
  bool transposed = false;  // a matrix: theirs is (in, out), ours is (out, in)
};

struct Architecture {
  const char* name;  // for messages: "GPT-2"
  std::span<const Row> rows;
  std::span<const char* const> not_read;  // tensors of theirs that are no parameters, such as masks
  std::string prefix = {};                // before their names in this file
  const char* without_prefix = "";        // one of their names that never has it
  int64_t key_rows = 0;                   // where there are three parts: the rows of the second and of the third
};

// Fills every parameter of the model from the files. Errors name the file and the tensor that is missing or misshapen, or that is
// neither a parameter of this model nor among the ones that are not read.
void load_theirs(Model& model, const Architecture& architecture, const WeightFiles& files);

// Every parameter of the model, on the CPU and in f32, as the other side calls and stores it. Error: a parameter that no row has.
NamedTensors as_theirs(Model& model, const Architecture& architecture);

// The template of conversations of a folder (apps/interop/their_tokenizer.h).
struct TheirChat {
  ImportedTemplate kept = {};
  std::vector<std::string> named = {};  // the key `chat` of a run file, by the markers in the template: chatml, llama3, or an empty list
  std::string note = {};                // a line about them, which begins with a line end; empty without a template
};

// Makes the folder, which is named after its last part: config.yaml with the keys of the model, no data, as the text of its training
// is elsewhere, and defaults for the rest; tokenizer.json unless null; the template of conversations; model.safetensors. Returns lines
// about it, and the note about the template. `origin`: where the weights came from, for these lines.
// Error: the folder holds a model or checkpoints already, or cannot be written.
std::string write_imported_run(
    const std::string& path, Model& model, const Tokenizer* tokenizer, const std::string& origin, const TheirChat& chat = {});

}  // namespace ricci::apps
