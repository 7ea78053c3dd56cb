// relu(x) = max(x, 0),   dx = dy where y > 0 and 0 elsewhere
//   bytes   8 N for N numbers in f32, 12 N backward, half in bf16
//   floor   65,536 rows of 3072 in bf16 on an H200: 0.81 GB at 4.8 TB/s 0.17 ms, 0.25 ms backward
#include "ops/elements/activations.h"
#include "ops/elements/unary.h"

namespace ricci {
namespace relu_kernels {

struct Relu {
  template <class A> HD static A value(A x) { return x <= 0 ? 0 : x; }
  template <class A> HD static A gradient(A dy, A y) { return y <= 0 ? 0 : dy; }
};

}  // namespace relu_kernels

using namespace relu_kernels;

HOST Tensor relu(const Arg& x) {
  DIMS(x);
  const auto [y, kept] = unary::forward<Relu>("relu", x);
  return record(
      "relu", {x}, y, keep(kept), [](const Tensor& dy, const Tensor& y) -> Grads { return {unary::backward<Relu>("relu'", dy, y)}; });
}

CUDA_UNARY(Relu);

}  // namespace ricci
