// The suffix of a tensor's name lists its indices: x_bcd has the indices batch, context and width. A public op checks all its inputs in its
// first line, before a wrong shape can lead to wrong numbers:
//   const Dims n = DIMS(merged(x_rd), w_fd, optional(bias_f));
// DIMS reads the letters from the argument names and binds each letter to its extent: n['d'] is the width. It throws if a tensor is empty
// or not floating-point, or if two tensors disagree about an index, a dtype or a device:
//   linear: index d is 3 in x_rd[10 3] but 4 in w_fd[7 4]
//   linear: x_rd is f32 on cpu, but w_fd is bf16 on cpu
// A number in the suffix is a fixed extent: x_b12ac has the indices b, 12, a, c. A name without a suffix allows any shape. A function
// around the name allows more, as optional() does above.
#pragma once
#include <initializer_list>
#include <string>

#include "core/tensor.h"

namespace ricci {

std::string show(const Shape& shape);  // "[2 5 3]"

// One input of an op and its requirements.
struct DimsInput {
  DimsInput(const Tensor& t) : tensor(&t) {}
  DimsInput(const Tensor* t) : tensor(t) {}

  enum class Elements : uint8_t { floating, i64, any };
  const Tensor* tensor;
  Elements elements = Elements::floating;  // all floating-point inputs share one dtype
  bool may_be_empty = false;
  bool merges = false;
};
// Allows an empty tensor. An empty tensor is not checked and binds no letter.
inline DimsInput optional(DimsInput input) {
  input.may_be_empty = true;
  return input;
}
inline DimsInput i64(DimsInput input) {
  input.elements = DimsInput::Elements::i64;
  return input;
}
inline DimsInput any_dtype(DimsInput input) {
  input.elements = DimsInput::Elements::any;
  return input;
}
// Allows more leading indices, merged into one: for merged(x_rd), r is 10 for x [10 3] and x [2 5 3]. Inputs that are merged into the same
// letter must have the same leading indices.
inline DimsInput merged(DimsInput input) {
  input.merges = true;
  return input;
}

class Dims {
 public:
  int64_t operator[](char letter) const { return extent_[static_cast<int>(letter)]; }  // 0 if the letter is not bound
  void bind(const char* op, const char* names, std::initializer_list<DimsInput> inputs);

 private:
  int64_t extent_[128] = {};
};

template <class... Inputs> Dims bind_dims(const char* op, const char* names, const Inputs&... inputs) {
  Dims dims;
  dims.bind(op, names, {DimsInput(inputs)...});
  return dims;
}

}  // namespace ricci

#define DIMS(...) ::ricci::bind_dims(__func__, #__VA_ARGS__, __VA_ARGS__)
