// Models of other programs as run folders, and run folders as models of other programs: Hugging Face's transformers and llama.cpp.
//
// A folder of transformers holds config.json, model.safetensors or multiple files with an index, and tokenizer.json or vocab.json with
// merges.txt. The models are GPT-2, Llama, Qwen2 and Qwen3: a decoder of ricci computes exactly the same.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/choice.h"

namespace ricci::apps {

// Makes a run, by its name or path (new_run), with the tokenizer of the folder, if any. `dropout`: by default as in the folder. Returns
// lines about it. Errors, after which no run is left: a config.json of an unknown architecture or with a setting that no ricci model has; a
// missing or misshapen tensor; a tokenizer larger than the vocabulary; a run folder that already holds a model.
std::string import_hugging_face(
    const std::string& folder, const std::string& run, std::optional<double> dropout, bool without_tokenizer = false);

// Writes the model of a run as a folder that transformers loads, with its tokenizer unless transformers has none of its kind. Returns lines
// about it. An interrupted export can be repeated. Errors: a model without an equivalent in transformers; a folder that holds a model.
std::string export_hugging_face(const std::string& run, const std::string& folder);

// ---- GGUF, the file format of llama.cpp, version 3 (little endian):
//   "GGUF", u32 3, i64 tensors, i64 pairs; the pairs: text key, i32 type, value; the tensors: text name, u32 dims, i64 extents with the
//   innermost first, i32 type, u64 place in the data; zeros up to a multiple of 32; the data, each tensor at a multiple of 32.
// A text is its length as u64 and its bytes. A list is the i32 type of its elements, their number as u64, and the elements.

// The numbers of matrices; vectors, gains and position_embd are f32. q8_0: blocks of 32 numbers of a row, each an f16 scale
// D = max |x| / 127 and 32 integers of 8 bits, x / D rounded, halves away from zero. Rows that are not a multiple of 32 become f16.
enum class GgufNumbers : uint8_t { f32, f16, bf16, q8_0 };
constexpr auto choices(GgufNumbers) { return std::array{"f32", "f16", "bf16", "q8_0"}; }

// The bytes of the numbers in the file. For q8_0 the numbers are whole blocks.
std::string gguf_bytes(std::span<const float> x, GgufNumbers numbers);

// Writes the model of a run as one file that llama.cpp loads. Returns lines about it. Errors, after which no file is left: a model other
// than gpt2, llama, qwen2 and qwen3; a tokenizer other than byte-level BPE, or with <eos> after lines; a file that already exists.
std::string export_gguf(const std::string& run, const std::string& file, GgufNumbers numbers, bool without_tokenizer);

}  // namespace ricci::apps
