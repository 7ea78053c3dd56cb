// The definition, one level after the other, with every V^r in memory. It needs no backward function: the ops that it calls record their
// own. The tests compare the fast versions with it.
//   V^{r+1}_bcnk = V^r_bcnk + c_bcn1 (V^r shifted 2^r positions to the right, zeros in front)_bcnk
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/elements/arithmetic.h"
#include "ops/shapes/shape_ops.h"
#include "ops/shift_and_sum/kernels.h"

namespace ricci {

Tensor naive_shift_and_sum(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) {
  const auto problem = shift_and_sum_kernels::check("naive_shift_and_sum", v_bcd, coef_bcx, options);
  const int64_t b = problem.batches, c = problem.positions, n = problem.heads;
  const uint32_t active = problem.active();
  Tensor v_bcnk = reshape(v_bcd, {b, c, n, problem.width});
  const Tensor coef_bcnr = reshape(coef_bcx, {b, c, n, problem.levels});
  for (int r = 0; r < problem.used; ++r) {
    if (!(active >> r & 1)) continue;
    const int64_t shift = int64_t{1} << r;
    const Tensor in_front = zeros({b, shift, n, problem.width}, v_bcd.dtype(), v_bcd.device());
    const Tensor shifted_bcnk = concatenate({in_front, slice(v_bcnk, 1, 0, c - shift)}, 1);
    v_bcnk = v_bcnk + slice(coef_bcnr, 3, r, 1) * shifted_bcnk;
  }
  return reshape(v_bcnk, {b, c, n * problem.width});
}

}  // namespace ricci
