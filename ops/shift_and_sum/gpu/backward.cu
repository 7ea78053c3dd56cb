// The backward on GPUs, from V^0, c and dy. In shared memory a thread block walks forward again, keeping the values in front of every
// walk but the first; then it walks backward over them with the gradient (walk.h), and reads V^0 once more for the last of
// these walks, from the L2 cache. The sums over its columns, which dc is made of, go to `partial` (problem.h), where
// sum_slices.cu adds the sums of a head. With N = b c d numbers of s bytes, R levels, heads of 32 columns and more, for each part:
//   bytes   3 s N + (s + 8) b c R (d / 32), where a slice has 32 columns;  FLOPs 6 N R
//   floor   65,536 rows of 768, c = 512, one head, in bf16 on an H200: 0.30 GB at 4.8 TB/s 0.06 ms
#include "cuda/launch.h"
#include "ops/shift_and_sum/gpu/team_walk.h"
#include "ops/shift_and_sum/kernels.h"

namespace ricci {
namespace shift_and_sum_kernels {

template <class T> struct BackwardKernel {
  static constexpr int kThreads = kGpuThreads;
  using A = Accumulator<T>;
  Problem problem;
  Part part;
  int columns;
  const T *dy, *v, *c;
  T* dv;
  A* partial;

  __device__ void operator()() const {
    const Place place = Place::of_block(problem, part, columns, true);
    const uint32_t active = active_levels(problem, part);
    if (place.empty()) return;  // the whole block, so that no barrier waits for a thread
    const Copy<T> copy{problem, part, place, columns};
    const BlockWalk<T> walks{problem, part, place, columns, active, c};
    const int size = place.rows() * columns, last = (part.levels - 1) / kWalkLevels;  // last: the number of the last walk
    A *const values = dynamic_shared<A>(), *const gradient = values + (last > 0 ? last : 1) * size;
    copy.in(v, values);
    copy.in(dy, gradient);
    __syncthreads();
    // The values in front of walk w, for w of 1 and more, stand in place w - 1.
    for (int w = 0; w < last; ++w) walk_forward<T>(walks, kWalkLevels * w, values + (w > 0 ? w - 1 : 0) * size, values + w * size);
    for (int w = last; w > 0; --w) walk_backward<T>(walks, kWalkLevels * w, values + (w - 1) * size, gradient, partial);
    if (last > 0) copy.in(v, values);
    __syncthreads();
    walk_backward<T>(walks, 0, values, gradient, partial);
    copy.out(gradient, dv);
  }
};

HOST void backward_part(const Problem& problem, const Part& part, int columns, const Tensor& dy_bcd, const Tensor& v_bcd,
    const Tensor& coef_bcx, const Tensor& dv_bcd, const Tensor& partial) {
  with_dtype(v_bcd, [&]<class T>(T) {
    launch("shift_and_sum'", v_bcd.device(), {blocks_of(problem, part, columns), kGpuThreads, part.bytes},
        BackwardKernel<T>{problem, part, columns, dy_bcd.data<T>(), v_bcd.data<T>(), coef_bcx.data<T>(), dv_bcd.data<T>(),
            partial.data<Accumulator<T>>()});
  });
}

HOST void backward_gpu(const Problem& problem, const Plan& plan, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx,
    const Tensor& dv_bcd, const Tensor& partial) {
  std::vector<Tensor> values{v_bcd};  // in front of each part
  for (size_t p = 0; p + 1 < plan.parts.size(); ++p) {
    values.push_back(like(v_bcd));
    forward_part(problem, plan.parts[p], plan.columns, values[p], coef_bcx, values[p + 1]);
  }
  Tensor gradient = dy_bcd;
  for (size_t p = plan.parts.size(); p-- > 0;) {
    const Tensor to = p > 0 ? like(v_bcd) : dv_bcd;
    backward_part(problem, plan.parts[p], plan.columns, gradient, values[p], coef_bcx, to, partial);
    gradient = to;
  }
}

}  // namespace shift_and_sum_kernels

using namespace shift_and_sum_kernels;

CUDA_KERNEL(BackwardKernel<float>);
CUDA_KERNEL(BackwardKernel<double>);
CUDA_KERNEL(BackwardKernel<bf16>);

}  // namespace ricci
