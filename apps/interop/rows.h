// How the parameters of another program are called there and here, as a table of rows, one table per architecture:
//   {"h.{i}.attn.c_attn.weight", "blocks.{i}.mixer.qkv.weight", true}
// {i} stands for the number of a block, the same on both sides.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/interop/weight_files.h"
#include "core/files/safetensors.h"
#include "models/model.h"

namespace ricci::apps {

struct Row {
  const char *theirs, *ours;
  bool transposed = false;  // a matrix: theirs is (in, out), ours is (out, in)
};

struct Architecture {
  const char* name;  // for messages: "GPT-2"
  std::span<const Row> rows;
  std::span<const char* const> not_read;  // tensors of theirs that are no parameters, such as masks
  std::string prefix = {};                // in front of their names in this file
  const char* without_prefix = "";        // one of their names that never has it
};

// Fills every parameter of the model from the files. Errors name the file and the tensor that is missing or misshapen, or that is
// neither a parameter of this model nor among those that are not read.
void load_theirs(Model& model, const Architecture& architecture, const WeightFiles& files);

// Every parameter of the model, on the CPU and in f32, as the other side calls and stores it. Error: a parameter that no row has.
std::vector<std::pair<std::string, Tensor>> as_theirs(Model& model, const Architecture& architecture);

}  // namespace ricci::apps
