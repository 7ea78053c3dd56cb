// A tensor that training changes. Its module (models/layers/) also gives it a role and the distribution of its initial values.
#pragma once
#include <string>
#include <vector>

#include "core/tensor.h"

namespace ricci {

enum class Role : uint8_t {
  matrix,  // a linear map, or other weights that multiply the input
  bias,    // added to the result
  gain,    // multiplies element by element: the weight of a norm
  table,   // ops select rows of it: embeddings
};

// Selects initial values to add 1 to, for matrices that start near the identity: the diagonals of matrices [.. k k], or of upper or lower
// triangles of such matrices, packed row by row.
enum class Diagonal : uint8_t { none, of_matrices, of_packed_upper, of_packed_lower };

struct Init {
  enum class Kind : uint8_t { constant, normal, uniform } kind = Kind::constant;
  double value = 0;  // the constant; or the standard deviation, with mean 0; or the bound of [-bound, bound)
  Diagonal diagonal = Diagonal::none;
};

struct Parameter {
  Tensor value{};
  mutable Tensor grad{};  // the sum of the gradients since the last clearing; empty if none arrived. Forward passes use const parameters
  std::string path{};     // its name in a checkpoint: blocks.0.mixer.qkv.weight
  Role role = Role::matrix;
  Init init{};
  // The f32 copy that training in bf16 updates, since bf16 would lose small updates; `value` is this copy, rounded. Empty for other dtypes.
  Tensor master{};
  std::vector<int64_t> row_blocks{};  // row counts of the linear maps in it, such as q, k and v
  bool frozen = false;                // not trained: no tape records it, and it gets no gradient

  const Tensor& unrounded() const { return master ? master : value; }
  Dtype sum_dtype() const { return master ? Dtype::f32 : value.dtype(); }  // the dtype of grad
};

// A model's tensor that is computed, not trained, such as fixed positions.
struct Constant {
  Tensor value{};
};

}  // namespace ricci
