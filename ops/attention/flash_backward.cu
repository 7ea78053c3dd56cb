// Flash attention backward in bf16: what the two gradient kernels need, in the order they need it. They do not wait for each
// other and share nothing that is written, so that no atomics are needed: the same bits on every run.
#include "cuda/device/device_memory.h"
#include "ops/attention/flash.h"
#include "ops/attention/flash_backward.h"
#include "ops/attention/flash_launch.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

// delta_bnt = dy_bt . y_bt of head n. A power of two of lanes shares a row of k elements; neighbours have neighbouring t.
// Bytes 4 k + 4 per row, which is also the floor: k = 64, b n c = 786,432 on an H200: 204 MB at 4.8 TB/s 0.04 ms.
template <int kWidth> struct DeltaKernel {
  static constexpr int kThreads = 256, kLanes = kWidth == 32 ? 4 : kWidth == 64 ? 8 : 16;
  unsigned rows, context, heads;
  const bf16 *dy, *y;
  float* delta;

  __device__ void operator()() const {
    const unsigned r = (blockIdx.x * kThreads + threadIdx.x) / kLanes, chunk = threadIdx.x % kLanes;
    float sum = 0;
    if (r < rows && chunk * 8 < kWidth) {
      const unsigned head = r / context, t = r % context;
      const int64_t at = (int64_t{head / heads} * context + t) * heads * kWidth + head % heads * kWidth + chunk * 8;
      const uint4 a = ptx::load16(dy + at), b = ptx::load16(y + at);
      sum = (products(a.x, b.x) + products(a.y, b.y)) + (products(a.z, b.z) + products(a.w, b.w));
    }
    for (int distance = kLanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (r < rows && chunk == 0) delta[r] = sum;
  }
  // Of two pairs.
  __device__ static float products(unsigned a, unsigned b) {
    return __uint_as_float(a << 16) * __uint_as_float(b << 16) + __uint_as_float(a & 0xffff0000u) * __uint_as_float(b & 0xffff0000u);
  }
};

template <int kWidth> void launch_delta(const Problem& problem, const Tensor& dy, const Tensor& y, const Tensor& delta) {
  const auto of = [](int64_t n) { return static_cast<unsigned>(n); };
  const DeltaKernel<kWidth> kernel{of(delta.size()), of(problem.context), of(problem.heads),
                                   dy.data<bf16>(),  y.data<bf16>(),      delta.data<float>()};
  launch("attention' delta", dy.device(), thread_per(delta.size() * kernel.kLanes, kernel.kThreads), kernel);
}

}  // namespace flash

HOST bool flash_fits(const Problem& problem, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors)
    if (t->dtype() != Dtype::bf16 || reinterpret_cast<uintptr_t>(t->raw()) % 16) return false;
  if (device_memory((*tensors.begin())->device()).shared_bytes() < flash_shared_bytes(problem.width)) return false;
  const int64_t k = problem.width, rows = problem.batches * problem.heads * problem.context;
  return (k == 32 || k == 64 || k == 96 || k == 128) && rows < int64_t{1} << 27 && problem.d() < 1 << 20;
}

HOST void flash_backward(const Problem& problem, const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc,
                         const Tensor& dqkv) {
  const Tensor delta_bnc = like(lse_bnc);
  flash::with_width(problem, [&]<int width, bool dropping>(flash::Choice<width, dropping>) { flash::launch_delta<width>(problem, dy, y, delta_bnc); });
  const flash::BackwardInputs in{problem,          flash::Bounds(problem), dy.data<bf16>(),
                                 qkv.data<bf16>(), lse_bnc.data<float>(),  delta_bnc.data<float>()};
  flash::key_gradient(in, dqkv);
  flash::query_gradient(in, dqkv);
}

}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_KERNEL(DeltaKernel<32>);
CUDA_KERNEL(DeltaKernel<64>);
CUDA_KERNEL(DeltaKernel<96>);
CUDA_KERNEL(DeltaKernel<128>);

}  // namespace ricci
