// The activation functions, as formulas of one number x. A formula is a struct F of one of two kinds:
//   F::value(x) and F::gradient(dy, y)   the slope follows from the value y, so the backward needs only y
//   F::both(x)                           the slope needs x: value and slope together, which share most of their work
// A is float or double. bf16 is computed as float.
#pragma once
#include <type_traits>

#include "core/tensor.h"
#include "cuda/math.h"
#include "cuda/ptx.h"

namespace ricci::formulas {

struct Relu {
  template <class A> HD static A value(A x) { return x <= 0 ? 0 : x; }
  template <class A> HD static A gradient(A dy, A y) { return y <= 0 ? 0 : dy; }
};

struct Sigmoid {
  template <class A> HD static A value(A x) { return math::sigmoid(x); }
  template <class A> HD static A gradient(A dy, A y) { return dy * y * (1 - y); }
};

template <class A> struct ValueAndSlope { A value, slope; };

struct Relu2 {
  template <class A> HD static ValueAndSlope<A> both(A x) {
    const A positive = Relu::value(x);
    return {positive * positive, 2 * positive};
  }
};

struct Gelu {
  template <class A> HD static ValueAndSlope<A> both(A x) {
    const A below = (1 + math::erf(x * A(0.70710678118654752))) / 2;  // P(N(0, 1) < x)
    return {x * below, below + x * math::exp(-x * x / 2) * A(0.39894228040143268)};
  }
};

struct GeluTanh {
  using Fast = struct FastGeluTanh;
  static constexpr double kScale = 0.79788456080286536, kCubic = 0.044715;
  template <class A> HD static ValueAndSlope<A> both(A x) {
    const A s = math::sigmoid(A(2 * kScale) * (x + A(kCubic) * x * x * x)), du = A(kScale) * (1 + 3 * A(kCubic) * x * x);
    return {x * s, s + 2 * x * s * (1 - s) * du};
  }
};

struct Silu {
  using Fast = struct FastSilu;
  template <class A> HD static ValueAndSlope<A> both(A x) {
    const A s = math::sigmoid(x);
    return {x * s, s + x * s * (1 - s)};
  }
};

template <class F>
concept HasSlope = requires {
  F::both(1.0f);
};

// Returns the value and the slope of a formula of either kind.
template <class F, class A> HD ValueAndSlope<A> both_of(A x) {
  if constexpr (HasSlope<F>) {
    return F::both(x);
  } else {
    const A value = F::value(x);
    return {value, F::gradient(A(1), value)};
  }
}

// ---- bf16 on a GPU
// F::Fast, if it is defined, replaces F. Its sigmoid s uses one instruction for a power of two and one for a reciprocal. The relative error
// of s stays below 2^-18 for s above 2^-40; rounding to bf16 is much coarser, 2^-9.
template <class F, class T>
concept HasFast = std::is_same_v<T, bf16> && requires {
  typename F::Fast;
};

struct FastGeluTanh {
  static constexpr float kScale = 0.797884561f, kCubic = 0.044715f, kMinusTwoLog2E = -2.88539008f;
  __device__ static ValueAndSlope<float> both(float x) {
    const float square = x * x;
    const float s = ptx::reciprocal_approx(1 + ptx::exp2_approx(kMinusTwoLog2E * kScale * (x + kCubic * x * square)));
    const float twice_du = 2 * kScale + 6 * kScale * kCubic * square, y = x * s;
    return {y, s + y * (1 - s) * twice_du};
  }
};

struct FastSilu {
  static constexpr float kMinusLog2E = -1.44269504f;
  __device__ static ValueAndSlope<float> both(float x) {
    const float s = ptx::reciprocal_approx(1 + ptx::exp2_approx(kMinusLog2E * x)), y = x * s;
    return {y, s + y * (1 - s)};
  }
};

}  // namespace ricci::formulas
