// A tensor that training changes, with the properties that its module gives it.
#pragma once
#include <string>

#include "core/tensor.h"

namespace ricci {

// The role of a parameter in the formula that reads it.
enum class Role : uint8_t {
  matrix,  // a linear map, or any other weights that multiply the input
  bias,    // is added
  gain,    // multiplies element by element: the weight of a norm
  table,   // rows are picked: embeddings
};

// Where 1 is added to its first values: the diagonals of matrices [.. k k], or of triangles of such matrices that are
// packed row by row.
enum class Diagonal : uint8_t { none, of_matrices, of_packed_upper, of_packed_lower };

// The way in which its first values are drawn.
struct Init {
  enum class Kind : uint8_t { constant, normal, uniform } kind = Kind::constant;
  double value = 0;  // the constant; the standard deviation, with mean 0; the bound of [-bound, bound)
  Diagonal diagonal = Diagonal::none;
};

// `path` is its name in a checkpoint: blocks.0.mixer.qkv.weight.
struct Parameter {
  Tensor value{};
  mutable Tensor grad{};  // the sum of gradients since it was last cleared, f32 beside a master; empty if none arrived
  std::string path{};
  Role role = Role::matrix;
  Init init{};
  Tensor master{};  // f32. In training the optimizer updates it, and a bf16 value is its rounding; empty for other values

  bool frozen = false;  // a constant while others are trained: no tape records it, no gradient reaches it

  const Tensor& unrounded() const { return master ? master : value; }
  // In which gradients are added up.
  Dtype sum_dtype() const { return master ? Dtype::f32 : value.dtype(); }
};

// A tensor that belongs to a model as its parameters do, but that is computed and not trained: fixed positions.
struct Constant {
  Tensor value{};
};

}  // namespace ricci
