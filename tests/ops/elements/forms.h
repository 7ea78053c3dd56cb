// The activation functions as tests know them: formulas of doubles with the error and hyperbolic functions of the standard library.
#pragma once
#include <numbers>

#include "core/choice.h"
#include "ops/elements/activations.h"
#include "tests/ops/values.h"

namespace ricci {

struct Form {
  Activation activation;
  Tensor (*op)(const Arg&);
  double (*value)(double x);
  double (*slope)(double x);
};

inline double below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
inline double tanh_argument(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }

inline const Form smooth_forms[] = {
    {Activation::gelu, gelu, [](double x) { return x * below(x); },
        [](double x) { return below(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }},
    {Activation::gelu_tanh, gelu_tanh, [](double x) { return x / 2 * (1 + std::tanh(tanh_argument(x))); },
        [](double x) {
          const double u = tanh_argument(x), du = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
          return (1 + std::tanh(u)) / 2 + x / 2 * du / (std::cosh(u) * std::cosh(u));
        }},
    {Activation::silu, silu, [](double x) { return x / (1 + std::exp(-x)); },
        [](double x) {
          const double s = 1 / (1 + std::exp(-x));
          return s * (1 + x * (1 - s));
        }},
};

inline const Form rectified_forms[] = {
    {Activation::relu, relu, [](double x) { return std::fmax(x, 0); }, [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {Activation::relu2, relu2, [](double x) { return x > 0 ? x * x : 0; }, [](double x) { return x > 0 ? 2 * x : 0; }},
};

}  // namespace ricci
