// The argument of a public op: a tensor, and the place in the source that passed it. Made implicitly, so that every op,
// operators included, can name its caller when its backward finds something wrong.
#pragma once
#include <string>

#include "core/tensor.h"

namespace ricci {

struct CallSite {
  const char* file = "";
  int line = 0;
};

// What a parameter is to the formula that reads it.
enum class Role : uint8_t {
  matrix,  // of a linear map, or any other weights that multiply the input
  bias,    // is added
  gain,    // multiplies element by element: the weight of a norm
  table,   // rows are picked: embeddings
};

// A tensor that training changes. `path` is its name in a checkpoint: blocks.0.mixer.qkv.weight.
struct Parameter {
  Tensor value{};
  mutable Tensor grad{};  // what backward has added up since it was last cleared; empty: nothing reached it
  std::string path{};
  Role role = Role::matrix;
  Tensor master{};  // f32, beside a bf16 value in training: what the optimizer updates, value being its rounding; else empty

  const Tensor& unrounded() const { return master ? master : value; }
};

struct Arg : Tensor {
  Arg(const Tensor& t, const char* file = __builtin_FILE(), int line = __builtin_LINE()) : Tensor(t), site{file, line} {}
  // While a tape records: a leaf on it.
  Arg(const Parameter& p, const char* file = __builtin_FILE(), int line = __builtin_LINE());
  CallSite site;
};

}  // namespace ricci
