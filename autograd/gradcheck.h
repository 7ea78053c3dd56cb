// Is a backward the derivative of its forward? Every element of every input is moved by +-h in f64 and the change of
// <c, f(x)> is compared with what backward says. c is random: with a sum (all ones) a softmax would pass with any factor.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/arg.h"

namespace ricci {

using CheckedFunction = std::function<std::vector<Tensor>(const std::vector<Parameter>& inputs)>;

struct GradCheck {
  double worst = 0;              // largest |numeric - analytic| over an input, relative to that input's largest |numeric|; infinite for NaN
  std::string worst_at;          // "input 1, element 17: 0.25 by differences, 0.5 by backward"
  double least_norm = 0;         // the smallest Euclidean norm among the inputs' gradients; 0 would prove nothing
  std::vector<std::string> ops;  // names the tape saw
};

// `inputs` are f64 (i64 inputs stay as they are), all on one device. f must give the same value for the same inputs.
GradCheck gradcheck(const CheckedFunction& f, std::vector<Parameter> inputs, double h = 1e-5);

}  // namespace ricci
