// Ops that map each element of one tensor, such as relu.cu. Each is a formula F (formulas.h) of one of two kinds:
//   F::value and F::gradient   the slope follows from the value y, as for relu and sigmoid: y is kept for the backward pass
//   F::both                    the slope needs x, as for gelu. If a tape records, the forward pass stores the slope instead of x: the same
//                              memory, and the backward pass is one multiplication, dx = dy slope
// CUDA_UNARY(F) or CUDA_UNARY_WITH_SLOPE(F) builds the kernels.
#pragma once
#include "autograd/record.h"
#include "core/dims.h"
#include "cuda/verbs/elements.h"
#include "ops/elements/formulas.h"

namespace ricci::unary {

using formulas::HasFast;
using formulas::HasSlope;

// y = F(x)
template <class F, class T> struct Value {
  const T* x;
  T* y;
  HD auto on_gpu() const requires HasFast<F, T> { return Value<typename F::Fast, T>{x, y}; }
  HD void operator()(int64_t i) const {
    if constexpr (HasSlope<F>) y[i] = T(F::both(Accumulator<T>(x[i])).value);
    else y[i] = T(F::value(Accumulator<T>(x[i])));
  }
  template <class V> HD auto arrays(V visit) { return visit(x, y); }
};

// y = F(x) and slope = F'(x)
template <class F, class T> struct Both {
  const T* x;
  T *y, *slope;
  HD auto on_gpu() const requires HasFast<F, T> { return Both<typename F::Fast, T>{x, y, slope}; }
  HD void operator()(int64_t i) const {
    const auto both = F::both(Accumulator<T>(x[i]));
    y[i] = T(both.value);
    slope[i] = T(both.slope);
  }
  template <class V> HD auto arrays(V visit) { return visit(x, y, slope); }
};

// dx = dy F'(x), from the slope or the value that was kept.
template <class F, class T> struct Backward {
  const T *dy, *kept;
  T* dx;
  HD void operator()(int64_t i) const {
    const Accumulator<T> dy_i(dy[i]), kept_i(kept[i]);
    if constexpr (HasSlope<F>) dx[i] = T(dy_i * kept_i);
    else dx[i] = T(F::gradient(dy_i, kept_i));
  }
  template <class V> HD auto arrays(V visit) { return visit(dy, kept, dx); }
};

struct Outputs {
  Tensor y, kept;  // kept: the slope (empty if no gradient is wanted), or y
};

// `caller` is the source line of the op, for errors about memory.
template <class F> Outputs forward(const char* name, const Tensor& x, CallSite caller = {}) {
  caller.function = "forward";
  const Tape* const tape = Tape::recording();
  const bool stores_slope = HasSlope<F> && tape && tape->has(x);
  const Tensor y = like(x, caller), slope = stores_slope ? like(x, caller) : Tensor();
  with_dtype(x, [&]<class T>(T) {
    if constexpr (HasSlope<F>)
      if (stores_slope) return for_each_element(name, x.device(), x.size(), Both<F, T>{x.data<T>(), y.data<T>(), slope.data<T>()});
    for_each_element(name, x.device(), x.size(), Value<F, T>{x.data<T>(), y.data<T>()});
  });
  return {y, HasSlope<F> ? slope : y};
}

template <class F> Tensor backward(const char* name, const Tensor& dy, const Tensor& kept, CallSite caller = {}) {
  caller.function = "backward";
  const Tensor dx = like(dy, caller);
  with_dtype(dy, [&]<class T>(T) {
    for_each_element(name, dy.device(), dy.size(), Backward<F, T>{dy.data<T>(), kept.data<T>(), dx.data<T>()});
  });
  return dx;
}

}  // namespace ricci::unary

#define CUDA_UNARY_OF(F, T)         \
  CUDA_ELEMENT(unary::Value<F, T>); \
  CUDA_ELEMENT(unary::Backward<F, T>)
#define CUDA_UNARY(F)       \
  CUDA_UNARY_OF(F, float);  \
  CUDA_UNARY_OF(F, double); \
  CUDA_UNARY_OF(F, bf16)
#define CUDA_UNARY_WITH_SLOPE(F)        \
  CUDA_UNARY(F);                        \
  CUDA_ELEMENT(unary::Both<F, float>);  \
  CUDA_ELEMENT(unary::Both<F, double>); \
  CUDA_ELEMENT(unary::Both<F, bf16>)
