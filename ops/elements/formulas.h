// Activation functions as formulas of one number, for the ops of single elements (unary.h) and for the gated product. A formula is a
// struct F that has
//   F::value(x) and F::gradient(dy, y)   where the slope follows from the value, or
//   F::both(x)                           value and slope
// F::Fast, where there is one, takes the place of F where a GPU rounds to bf16.
#pragma once
#include <type_traits>

#include "core/tensor.h"
#include "cuda/math.h"
#include "cuda/ptx.h"

namespace ricci::formulas {

template <class A> struct ValueAndSlope { A value, slope; };

template <class F>
concept HasSlope = requires {
  F::both(1.0f);
};

template <class F, class T>
concept HasFast = std::is_same_v<T, bf16> && requires {
  typename F::Fast;
};

// Value and slope of any formula.
template <class F, class A> HD ValueAndSlope<A> both_of(A x) {
  if constexpr (HasSlope<F>) {
    return F::both(x);
  } else {
    const A value = F::value(x);
    return {value, F::gradient(A(1), value)};
  }
}

struct Erf {
  template <class A> HD static ValueAndSlope<A> both(A x) {
    const A below = (1 + math::erf(x * A(0.70710678118654752))) / 2;  // P(N(0, 1) < x)
    return {x * below, below + x * math::exp(-x * x / 2) * A(0.39894228040143268)};
  }
};

// gelu_tanh where it is rounded to bf16: a power of two and a reciprocal by one instruction each. The relative error of both together stays
// below 2^-18 as long as s is not below 2^-40; bf16 keeps 2^-9.
struct FastTanh {
  static constexpr float kScale = 0.797884561f, kCubic = 0.044715f, kMinusTwoLog2E = -2.88539008f;
  __device__ static ValueAndSlope<float> both(float x) {
    const float square = x * x;
    const float s = ptx::reciprocal_approx(1 + ptx::exp2_approx(kMinusTwoLog2E * kScale * (x + kCubic * x * square)));
    const float twice_du = 2 * kScale + 6 * kScale * kCubic * square, y = x * s;
    return {y, s + y * (1 - s) * twice_du};
  }
};

struct Tanh {
  using Fast = FastTanh;
  static constexpr double kScale = 0.79788456080286536, kCubic = 0.044715;
  template <class A> HD static ValueAndSlope<A> both(A x) {
    const A s = math::sigmoid(A(2 * kScale) * (x + A(kCubic) * x * x * x)), du = A(kScale) * (1 + 3 * A(kCubic) * x * x);
    return {x * s, s + 2 * x * s * (1 - s) * du};
  }
};

struct Relu {
  template <class A> HD static A value(A x) { return x <= 0 ? 0 : x; }
  template <class A> HD static A gradient(A dy, A y) { return y <= 0 ? 0 : dy; }
};

struct Relu2 {
  template <class A> HD static ValueAndSlope<A> both(A x) {
    const A positive = Relu::value(x);
    return {positive * positive, 2 * positive};
  }
};

struct Sigmoid {
  template <class A> HD static A value(A x) { return math::sigmoid(x); }
  template <class A> HD static A gradient(A dy, A y) { return dy * y * (1 - y); }
};

// silu where it is rounded to bf16, with the instructions of FastTanh.
struct FastSilu {
  static constexpr float kMinusLog2E = -1.44269504f;
  __device__ static ValueAndSlope<float> both(float x) {
    const float s = ptx::reciprocal_approx(1 + ptx::exp2_approx(kMinusLog2E * x)), y = x * s;
    return {y, s + y * (1 - s)};
  }
};

struct Silu {
  using Fast = FastSilu;
  template <class A> HD static ValueAndSlope<A> both(A x) {
    const A s = math::sigmoid(x);
    return {x * s, s + x * s * (1 - s)};
  }
};

}  // namespace ricci::formulas
