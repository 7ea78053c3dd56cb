// The public op. The backward pass goes from the last level to the first (shift_and_sum.h derives it). With G^r = dL/dV^r:
//   dc[i, r] = <G^{r+1}[i], V^r[i - 2^r]>  (over the columns of the head),   G^r[i] = G^{r+1}[i] + c[i + 2^r, r] G^{r+1}[i + 2^r]
// and dV^0 = G^0. Kept for the backward: V^0 and c.
#include "ops/shift_and_sum/shift_and_sum.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/philox.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "cuda/trace.h"
#include "cuda/verbs/elements.h"
#include "ops/shift_and_sum/kernels.h"

namespace ricci {
namespace shift_and_sum_kernels {

// The gradient of the coefficients from the sums over slices of columns (problem.h), added one after the other:
//   dcoef = sum over slices of partial, 0 for the levels that are not used
//   bytes   (4 slices + s) b c heads R, elements of s bytes
template <class T> struct SumSlices {
  using A = Accumulator<T>;
  const A* partial;
  T* dcoef;
  int64_t slices, levels, used, of_slice;
  HD void operator()(int64_t i) const {
    const int64_t level = i % levels, index = i / levels * used + level;
    A sum = 0;
    for (int64_t s = 0; s < slices && level < used; ++s) sum += partial[s * of_slice + index];
    dcoef[i] = T(sum);
  }
};

HOST void sum_slices(const Problem& problem, const Tensor& partial, const Tensor& dcoef_bcx) {
  const int64_t slices = partial.shape()[0], of_slice = partial.size() / slices;
  with_dtype(dcoef_bcx, [&]<class T>(T) {
    for_each_element("shift_and_sum': slices", dcoef_bcx.device(), dcoef_bcx.size(),
        SumSlices<T>{partial.data<Accumulator<T>>(), dcoef_bcx.data<T>(), slices, problem.levels, problem.used, of_slice});
  });
}

HOST double count_flops(const Problem& problem) {
  double rows = 0;
  for (int r = 0; r < problem.used; ++r) rows += static_cast<double>(problem.positions - (int64_t{1} << r));
  return 2 * rows * static_cast<double>(problem.batches * problem.d());
}

HOST Plan make_plan(const Tensor& v_bcd, const Problem& problem, bool backward) {
  return plan(problem, backward, size_of(sums_of(v_bcd.dtype())), device_memory(v_bcd.device()).shared_bytes());
}

HOST Tensor forward(const Problem& problem, const Tensor& v_bcd, const Tensor& coef_bcx) {
  const Tensor y_bcd = like(v_bcd);
  if (y_bcd.size() == 0) return y_bcd;
  if (trace::enabled) trace::flops(count_flops(problem));
  if (v_bcd.device() == Device::cpu) forward_cpu(problem, v_bcd, coef_bcx, y_bcd);
  else forward_gpu(problem, make_plan(v_bcd, problem, false), v_bcd, coef_bcx, y_bcd);
  return y_bcd;
}

HOST Grads backward(const Problem& problem, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx) {
  const Tensor dv_bcd = like(v_bcd), dcoef_bcx = like(coef_bcx);
  if (v_bcd.size() == 0) return {dv_bcd, zeros_like(coef_bcx)};
  if (trace::enabled) trace::flops(3 * count_flops(problem));
  const bool cpu = v_bcd.device() == Device::cpu;
  const int64_t slices = cpu ? gradient_slices_cpu(problem) : gradient_slices_gpu(problem);
  const Tensor partial({slices, problem.batches, problem.positions, problem.heads, problem.used}, sums_of(v_bcd.dtype()), v_bcd.device());
  if (cpu) backward_cpu(problem, dy_bcd, v_bcd, coef_bcx, dv_bcd, partial);
  else backward_gpu(problem, make_plan(v_bcd, problem, true), dy_bcd, v_bcd, coef_bcx, dv_bcd, partial);
  sum_slices(problem, partial, dcoef_bcx);
  return {dv_bcd, dcoef_bcx};
}

HOST Problem check(const char* op, const Tensor& v_bcd, const Tensor& coef_bcx, const ShiftAndSumOptions& options) {
  Dims n;
  n.bind(op, "v_bcd, coef_bcx", {v_bcd, coef_bcx});
  if (options.heads < 1) fail("{}: heads is {}, expected at least 1", {op, options.heads});
  if (n['d'] % options.heads) fail("{}: v has {} columns, expected a multiple of the {} heads", {op, n['d'], options.heads});
  if (n['x'] % options.heads) fail("{}: a position has {} coefficients, expected a multiple of the {} heads", {op, n['x'], options.heads});
  const int64_t levels = n['x'] / options.heads;
  if (levels < 1 || levels > kMaxLevels) fail("{}: the number of levels is {}, expected 1 .. {}", {op, levels, kMaxLevels});
  if (!(options.dropout >= 0 && options.dropout < 1)) fail("{}: dropout is {}, expected 0 or more and less than 1", {op, options.dropout});
  int used = 0;
  while (used < levels && int64_t{1} << used < n['c']) ++used;
  Problem problem{n['b'], n['c'], options.heads, n['d'] / options.heads, static_cast<int>(levels), used};
  if (options.dropout > 0)
    problem.dropout = {take_stream(), static_cast<uint32_t>(options.dropout * 0x1p32), options.drops_level_0 ? 0 : 1};
  return problem;
}

}  // namespace shift_and_sum_kernels

using namespace shift_and_sum_kernels;

HOST Tensor shift_and_sum(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) {
  const Problem problem = check("shift_and_sum", v_bcd, coef_bcx, options);
  return record("shift_and_sum", {v_bcd, coef_bcx}, forward(problem, v_bcd, coef_bcx), keep(v_bcd, coef_bcx, problem),
      [](const Tensor& dy_bcd, const Tensor& v, const Tensor& coef, const Problem& kept) -> Grads {
        return shift_and_sum_kernels::backward(kept, dy_bcd, v, coef);
      });
}

CUDA_ELEMENTS(SumSlices);

}  // namespace ricci
