// The models of llama.cpp that runs can be, as GGUF names them: gpt2, llama, qwen2 and qwen3.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/model.h"

namespace ricci::apps {

struct GgufModel {
  std::string type;
  std::string note = {};  // a difference in the arithmetic of llama.cpp
  // After the type and a dot.
  std::vector<std::pair<std::string, std::variant<uint32_t, float, std::string>>> keys = {};
  std::vector<std::pair<std::string, Tensor>> tensors = {};  // on the CPU, in f32
};

// Error: names the key of a model that none of them can be.
GgufModel gguf_model(Model& model);

}  // namespace ricci::apps
