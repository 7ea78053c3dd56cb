// The backward pass on GPUs, computed from V^0, c and dy. In shared memory, a thread block walks forward again and keeps the values before
// every walk but the first, as factors of the gradients of the coefficients. Then it walks backward over them with the gradient (walk.h),
// and reads V^0 once more for the last of these walks, from the L2 cache. The sums over its columns, the terms of dc, go to `partial`
// (problem.h), and shift_and_sum.cu adds the sums of a head. For each part, with N = b c d elements of s bytes, R levels, and head widths
// that are multiples of 32:
//   bytes   3 s N + (s + 8) b c R (d / 32);  FLOPs 6 N R
#include "cuda/launch.h"
#include "ops/shift_and_sum/gpu/block_walk.h"
#include "ops/shift_and_sum/kernels.h"

namespace ricci {
namespace shift_and_sum_kernels {

template <class T> struct BackwardKernel {
  using A = Accumulator<T>;
  static constexpr int kThreads = 32 * kMaxWarps<A>;
  Problem problem;
  Part part;
  const T *dy, *v, *c;
  T* dv;
  A* partial;

  __device__ void operator()() const {
    const Place place = Place::of_block(problem, part, true);
    const uint32_t active = active_levels(problem, part);
    if (place.empty()) return;                                                  // all threads return, before the barriers
    const int size = place.rows * kColumns, later = walks_of(part.levels) - 1;  // walks after the first
    A *const values = dynamic_shared<A>(), *const gradient = values + max(later, 1) * size, *const coefficients = gradient + size;
    const Copy<T> copy(problem, part, place);
    copy.load({{v, values}, {dy, gradient}}, place.rows);
    copy_coefficients(problem, part, place, active, c, coefficients);
    __syncthreads();
    const BlockWalk<T> walks{
        problem, part, place, active, coefficients, partial + partial_at(problem, place.slice, place.sequence, 0, place.head)};
    // The first buffer holds the values before the second walk, the second buffer the values before the third.
    if (later > 0) walk_forward<0>(walks, values, values);
    if (later > 1) {
      walk_forward<3>(walks, values, values + size);
      walk_backward<6>(walks, values + size, gradient);
    }
    if (later > 0) {
      walk_backward<3>(walks, values, gradient);
      copy.load({{v, values}}, place.rows);
      __syncthreads();
    }
    if (part.levels > 0) walk_backward<0>(walks, values, gradient);
    copy.store(gradient, dv, place.begin, place.end);
  }
};

HOST void backward_part(const Problem& problem, const Part& part, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx,
    const Tensor& dv_bcd, const Tensor& partial) {
  with_dtype(v_bcd, [&]<class T>(T) {
    launch("shift_and_sum'", v_bcd.device(), {blocks_of(problem, part), 32 * part.warps, part.bytes},
        BackwardKernel<T>{
            problem, part, dy_bcd.data<T>(), v_bcd.data<T>(), coef_bcx.data<T>(), dv_bcd.data<T>(), partial.data<Accumulator<T>>()});
  });
}

HOST void backward_gpu(const Problem& problem, const Plan& plan, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx,
    const Tensor& dv_bcd, const Tensor& partial) {
  std::vector<Tensor> values{v_bcd};  // the values before each part
  for (size_t p = 0; p + 1 < plan.size(); ++p) {
    values.push_back(like(v_bcd));
    forward_part(problem, plan[p], values[p], coef_bcx, values[p + 1]);
  }
  Tensor gradient = dy_bcd;
  for (size_t p = plan.size(); p-- > 0;) {
    const Tensor input_gradient = p > 0 ? like(v_bcd) : dv_bcd;
    backward_part(problem, plan[p], gradient, values[p], coef_bcx, input_gradient, partial);
    gradient = input_gradient;
  }
}

}  // namespace shift_and_sum_kernels

using namespace shift_and_sum_kernels;

CUDA_KERNEL(BackwardKernel<float>);
CUDA_KERNEL(BackwardKernel<double>);
CUDA_KERNEL(BackwardKernel<bf16>);

}  // namespace ricci
