// Runs as GGUF, the file format of llama.cpp, version 3 (little endian):
//   "GGUF", u32 3, i64 tensors, i64 pairs; the pairs: text key, i32 type, value; the tensors: text name, u32 dims, i64 extents with the
//   innermost first, i32 type, u64 place in the data; zeros up to a multiple of 32; the data, each tensor at a multiple of 32.
// A text is its length as u64 and its bytes. A list is the i32 type of its elements, their number as u64, and the elements.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "core/choice.h"

namespace ricci::apps {

// The numbers of matrices; vectors, gains and position_embd are f32. q8_0: blocks of 32 numbers of a row, each an f16 scale
// D = max |x| / 127 and 32 integers of 8 bits, x / D rounded, halves away from zero. A row that is not a multiple of 32 is f16 then.
enum class GgufNumbers : uint8_t { f32, f16, bf16, q8_0 };
constexpr auto choices(GgufNumbers) { return std::array{"f32", "f16", "bf16", "q8_0"}; }

// The bits of the nearest f16, of two as near the even one; infinity where it is too large.
uint16_t f16_bits(float x);

// The bytes of the numbers in the file. For q8_0 the numbers are whole blocks.
std::string gguf_bytes(std::span<const float> x, GgufNumbers numbers);

// Writes the model of a run, `which` as in RunFolder::load_model, with its tokenizer, as one file that llama.cpp loads. Returns lines
// about it.
// Errors: a model that none of gpt2, llama, qwen2 and qwen3 can be, with its key; a tokenizer other than byte-level BPE without <eos> after
// lines, unless without_tokenizer; a file that is there already; the system's. No new file is left then.
std::string export_gguf(
    const std::string& run, const std::string& which, const std::string& file, GgufNumbers numbers, bool without_tokenizer);

}  // namespace ricci::apps
