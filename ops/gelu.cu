// gelu(x)      = x/2 (1 + erf(x / sqrt 2))                  gelu'(x) = (1 + erf(x / sqrt 2))/2 + x exp(-x^2/2) / sqrt(2 pi)
// gelu_tanh(x) = x s(x), s(x) = (1 + tanh u)/2, u = sqrt(2/pi) (x + 0.044715 x^3)
//                                                          gelu_tanh'(x) = s + 2 x s (1 - s) du/dx
#include "ops/gelu.h"

#include "autograd/record.h"
#include "cuda/elements.h"
#include "cuda/math.h"

namespace ricci {
namespace gelu_kernels {

struct Erf {
  template <class A> HD static A value(A x) { return x / 2 * (1 + math::erf(x * A(0.70710678118654752))); }
  template <class A> HD static A slope(A x) {
    return (1 + math::erf(x * A(0.70710678118654752))) / 2 + x * math::exp(-x * x / 2) * A(0.39894228040143268);
  }
};

struct Tanh {
  static constexpr double kScale = 0.79788456080286536, kCubic = 0.044715;
  template <class A> HD static A gate(A x) { return (1 + math::tanh(A(kScale) * (x + A(kCubic) * x * x * x))) / 2; }
  template <class A> HD static A value(A x) { return x * gate(x); }
  template <class A> HD static A slope(A x) {
    const A s = gate(x), du = A(kScale) * (1 + 3 * A(kCubic) * x * x);
    return s + 2 * x * s * (1 - s) * du;
  }
};

template <class Form, class T> struct Forward {
  const T* x;
  T* y;
  HD void operator()(int64_t i) const { y[i] = T(Form::value(Accumulator<T>(x[i]))); }
};
template <class Form, class T> struct Backward {
  const T *dy, *x;
  T* dx;
  HD void operator()(int64_t i) const { dx[i] = T(Accumulator<T>(dy[i]) * Form::slope(Accumulator<T>(x[i]))); }
};

template <class T> using ErfForward = Forward<Erf, T>;
template <class T> using ErfBackward = Backward<Erf, T>;
template <class T> using TanhForward = Forward<Tanh, T>;
template <class T> using TanhBackward = Backward<Tanh, T>;

template <class Form> Tensor forward(const char* name, const Tensor& x) {
  Tensor y = like(x);
  with_dtype(x, [&]<class T>(T) { for_each_element(name, x.device(), x.size(), Forward<Form, T>{x.data<T>(), y.data<T>()}); });
  return y;
}

template <class Form> Tensor backward(const char* name, const Tensor& dy, const Tensor& x) {
  Tensor dx = like(x);
  with_dtype(x, [&]<class T>(T) {
    for_each_element(name, x.device(), x.size(), Backward<Form, T>{dy.data<T>(), x.data<T>(), dx.data<T>()});
  });
  return dx;
}

}  // namespace gelu_kernels

using namespace gelu_kernels;

HOST Tensor gelu(const Arg& x) {
  return record("gelu", {x}, forward<Erf>("gelu", x), keep(x), [](const Tensor& dy, const Tensor& x) -> Grads {
    return {backward<Erf>("gelu'", dy, x)};
  });
}

HOST Tensor gelu_tanh(const Arg& x) {
  return record("gelu_tanh", {x}, forward<Tanh>("gelu_tanh", x), keep(x), [](const Tensor& dy, const Tensor& x) -> Grads {
    return {backward<Tanh>("gelu_tanh'", dy, x)};
  });
}

CUDA_ELEMENTS(ErfForward);
CUDA_ELEMENTS(ErfBackward);
CUDA_ELEMENTS(TanhForward);
CUDA_ELEMENTS(TanhBackward);

}  // namespace ricci
