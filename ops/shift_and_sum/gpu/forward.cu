// The forward pass on GPUs: y = V^R from V^0 and c in one kernel. A thread block copies some columns of a sequence into shared memory,
// walks over them three levels at a time, in place, and copies them back, so only two passes access memory. Long sequences are computed in
// parts (kernels.h), one kernel each. With N = b c d elements of s bytes, R levels, and head widths that are multiples of 32:
//   bytes   2 s N + s b c R (d / 32), for each part;  FLOPs 2 N R
#include "cuda/launch.h"
#include "ops/shift_and_sum/gpu/block_walk.h"
#include "ops/shift_and_sum/kernels.h"

namespace ricci {
namespace shift_and_sum_kernels {

template <class T> struct ForwardKernel {
  using A = Accumulator<T>;
  static constexpr int kThreads = 32 * kMaxWarps<A>, kMinBlocks = 2;  // one block copies while the other walks
  Problem problem;
  Part part;
  const T *v, *c;
  T* y;

  __device__ void operator()() const {
    const Place place = Place::of_block(problem, part, false);
    const uint32_t active = active_levels(problem, part);
    if (place.empty()) return;  // all threads return, before the barriers
    A *const values = dynamic_shared<A>(), *const coefficients = values + place.rows * kColumns;
    const Copy<T> copy(problem, part, place);
    copy.load({{v, values}}, place.rows);
    copy_coefficients(problem, part, place, active, c, coefficients);
    __syncthreads();
    const BlockWalk<T> walks{problem, part, place, active, coefficients, nullptr};
    if (active & 7) walk_forward<0>(walks, values, values);
    if (active >> 3 & 7) walk_forward<3>(walks, values, values);
    if (active >> 6 & 7) walk_forward<6>(walks, values, values);
    if (active >> 9) walk_forward<9>(walks, values, values);
    copy.store(values, y, place.begin, place.end);
  }
};

HOST void forward_part(const Problem& problem, const Part& part, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd) {
  with_dtype(v_bcd, [&]<class T>(T) {
    launch("shift_and_sum", v_bcd.device(), {blocks_of(problem, part), 32 * part.warps, part.bytes},
        ForwardKernel<T>{problem, part, v_bcd.data<T>(), coef_bcx.data<T>(), y_bcd.data<T>()});
  });
}

HOST void forward_gpu(const Problem& problem, const Plan& plan, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd) {
  Tensor from = v_bcd;
  for (size_t p = 0; p < plan.size(); ++p) {
    const Tensor result = p + 1 < plan.size() ? like(v_bcd) : y_bcd;
    forward_part(problem, plan[p], from, coef_bcx, result);
    from = result;
  }
}

}  // namespace shift_and_sum_kernels

using namespace shift_and_sum_kernels;

CUDA_KERNEL(ForwardKernel<float>);
CUDA_KERNEL(ForwardKernel<double>);
CUDA_KERNEL(ForwardKernel<bf16>);

}  // namespace ricci
