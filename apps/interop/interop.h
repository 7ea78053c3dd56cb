// Converts between run folders and the models of Hugging Face's transformers and llama.cpp.
//
// A transformers folder holds config.json, model.safetensors or multiple files with an index, and tokenizer.json or vocab.json with
// merges.txt. The models are GPT-2, Llama, Qwen2 and Qwen3, all decoders of ricci.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/choice.h"

namespace ricci::apps {

// Converts a transformers folder, with its tokenizer, if any, into a run with this name or path (new_run). `dropout`: by default the
// folder's rate. Returns lines about the run. After an error, no run is left. Errors: the architecture is unknown; a setting of config.json
// has no equivalent in ricci; a tensor is missing or has the wrong shape; the tokenizer has more tokens than the vocabulary; the run folder
// already contains a model.
std::string import_hugging_face(
    const std::string& folder, const std::string& run, std::optional<double> dropout, bool without_tokenizer = false);

// Writes a run's model as a transformers folder, with its tokenizer if transformers supports this tokenizer kind. Returns lines about the
// folder. An interrupted export can be repeated. Errors: the model has no equivalent in transformers; the folder holds a model.
std::string export_hugging_face(const std::string& run, const std::string& folder);

// ---- GGUF, the file format of llama.cpp, version 3 (little endian):
//   header    "GGUF", u32 3, i64 number of tensors, i64 number of pairs
//   pairs     text key, i32 type, value
//   tensors   text name, u32 dims, i64 extents (the innermost first), i32 type, u64 offset in the data
//   data      each tensor at a multiple of 32 bytes, with zeros before it
// A text is its u64 length and its bytes. A list is the i32 type of its elements, their u64 count, and the elements.

// The element type of matrices; vectors, gains and position_embd are f32. q8_0: blocks of 32 elements of a row, each stored as an f16 scale
// D = max |x| / 127 and 32 8-bit integers, x / D rounded, with halves away from zero. If 32 does not divide the row length, f16 is used.
enum class GgufNumbers : uint8_t { f32, f16, bf16, q8_0 };
constexpr auto choices(GgufNumbers) { return std::array{"f32", "f16", "bf16", "q8_0"}; }

// The bytes of `x` in the file. For q8_0, the length of x is a multiple of 32.
std::string gguf_bytes(std::span<const float> x, GgufNumbers numbers);

// Writes a run's model as one file for llama.cpp. Returns a text about the file. After an error, no file is left. Errors: the model is not
// gpt2, llama, qwen2 or qwen3; the tokenizer is not byte-level BPE, or puts <eos> after lines; the file already exists.
std::string export_gguf(const std::string& run, const std::string& file, GgufNumbers numbers, bool without_tokenizer);

}  // namespace ricci::apps
