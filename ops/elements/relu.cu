// relu(x) = max(x, 0),   dx = dy where y > 0 and 0 elsewhere
//   bytes   8 N for N numbers in f32, 12 N backward, half in bf16
//   floor   65,536 rows of 3072 in bf16 on an H200: 0.81 GB at 4.8 TB/s 0.17 ms, 0.25 ms backward
#include "ops/elements/relu.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "cuda/verbs/elements.h"

namespace ricci {
namespace relu_kernels {

template <class T> struct Forward {
  const T* x;
  T* y;
  HD void operator()(int64_t i) const { y[i] = T(Accumulator<T>(x[i]) <= 0 ? 0 : Accumulator<T>(x[i])); }
};
template <class T> struct Backward {
  const T *dy, *y;
  T* dx;
  HD void operator()(int64_t i) const { dx[i] = T(Accumulator<T>(y[i]) <= 0 ? 0 : Accumulator<T>(dy[i])); }
};

}  // namespace relu_kernels

using namespace relu_kernels;

HOST Tensor relu(const Arg& x) {
  DIMS(x);
  Tensor y = like(x);
  with_dtype(x, [&]<class T>(T) { for_each_element("relu", x.device(), x.size(), Forward<T>{x.data<T>(), y.data<T>()}); });
  return record("relu", {x}, y, keep(y), [](const Tensor& dy, const Tensor& y) -> Grads {
    Tensor dx = like(y);
    with_dtype(y, [&]<class T>(T) {
      for_each_element("relu'", y.device(), y.size(), Backward<T>{dy.data<T>(), y.data<T>(), dx.data<T>()});
    });
    return {dx};
  });
}

CUDA_ELEMENTS(Forward);
CUDA_ELEMENTS(Backward);

}  // namespace ricci
