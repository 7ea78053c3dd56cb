// The suffix of a tensor's name is its index list: x_bcd has batch, context and width. DIMS(x_bcd, w_fd) reads the
// letters from the argument names, binds each to its extent and throws when two tensors disagree:
//   linear: index d is 3 in x_bcd[2 5 3] but 4 in w_fd[7 4]
// A number in the suffix is a fixed extent: b12ac has the indices b, 12, a, c.
#pragma once
#include <initializer_list>
#include <string>

#include "core/tensor.h"

namespace ricci {

std::string show(const Shape& shape);  // "[2 5 3]"

class Dims {
 public:
  int64_t operator[](char letter) const { return extent_[static_cast<int>(letter)]; }
  void bind(const char* op, const char* names, std::initializer_list<const Tensor*> tensors);

 private:
  int64_t extent_[128] = {};
};

template <class... Tensors> Dims bind_dims(const char* op, const char* names, const Tensors&... tensors) {
  Dims dims;
  dims.bind(op, names, {static_cast<const Tensor*>(&tensors)...});
  return dims;
}

}  // namespace ricci

#define DIMS(...) ::ricci::bind_dims(__func__, #__VA_ARGS__, __VA_ARGS__)
