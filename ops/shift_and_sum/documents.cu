// Packed documents: position i depends on position i - 2^r only where that belongs to its document, which begins at start_i.
//   y[i, r] = c[i, r] if i - 2^r >= start_i, else 0;   dc[i, r] likewise of dy[i, r]
// The kernels of the sum then add 0 times what another document holds: they need no further condition, and are the same without packing.
// (0 times what is not finite is not finite: such a value reaches the documents after it.)
//   bytes   2 s b c heads R, numbers of s bytes, each way
//   floor   65,536 positions of 12 heads and 10 levels in bf16 on an H200: 31 MB at 4.8 TB/s 0.007 ms each way
#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/verbs/elements.h"
#include "ops/shift_and_sum/kernels.h"

namespace ricci {
namespace shift_and_sum_kernels {

template <class T> struct Within {
  const T* source;
  T* target;
  const int64_t* starts;
  int64_t positions, coefficients, levels;  // coefficients: of a position
  HD void operator()(int64_t i) const {
    const int64_t row = i / coefficients, r = i % levels, position = row % positions;
    target[i] = position - (int64_t{1} << r) >= starts[row] ? source[i] : T(0);
  }
};

HOST Tensor within(const Tensor& coef_bcx, const Tensor& starts_bc, int64_t heads) {
  const Tensor y_bcx = like(coef_bcx);
  const int64_t x = coef_bcx.shape()[2];
  with_dtype(coef_bcx, [&]<class T>(T) {
    for_each_element("shift_and_sum: documents", coef_bcx.device(), coef_bcx.size(),
        Within<T>{coef_bcx.data<T>(), y_bcx.data<T>(), starts_bc.data<int64_t>(), coef_bcx.shape()[1], x, x / heads});
  });
  return y_bcx;
}

}  // namespace shift_and_sum_kernels

using namespace shift_and_sum_kernels;

HOST Tensor coefficients_within(const Arg& coef_bcx, const Tensor& starts_bc, int64_t heads) {
  const Dims n = DIMS(coef_bcx, i64(starts_bc));
  if (heads < 1 || n['x'] % heads)
    fail("coefficients_within: {} coefficients of a position are not a multiple of {} heads", {n['x'], heads});
  return record("coefficients_within", {coef_bcx}, within(coef_bcx, starts_bc, heads), keep(starts_bc, heads),
      [](const Tensor& dy_bcx, const Tensor& starts, int64_t kept) -> Grads { return {within(dy_bcx, starts, kept)}; });
}

CUDA_ELEMENTS(Within);

}  // namespace ricci
