// The backward pass of flash attention in bf16: computes first delta, an input of both gradient kernels, then dk and dv, then dq. No two
// thread blocks write the same element, so no atomics are needed, and the results of all runs are bitwise identical.
#include "ops/attention/flash/backward.h"

#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "ops/attention/flash/flash.h"

namespace ricci {
namespace attention_kernels {
namespace flash {

// delta_bnt = dy_bt . y_bt of head n. 2^i lanes share a row of k elements; adjacent groups of lanes have adjacent t. Bytes: 4 k + 4 for
// each row.
template <int kWidth> struct DeltaKernel {
  static constexpr int kThreads = 256, kLanes = lanes_of_row(kWidth);
  unsigned rows, queries, heads;
  const bf16 *dy, *y;
  float* delta;

  __device__ void operator()() const {
    const unsigned r = (blockIdx.x * kThreads + threadIdx.x) / kLanes, chunk = threadIdx.x % kLanes;
    float sum = 0;
    if (r < rows && chunk * 8 < kWidth) {
      const unsigned head = r / queries, t = r % queries;
      const int64_t offset = (int64_t{head / heads} * queries + t) * heads * kWidth + head % heads * kWidth + chunk * 8;
      const uint4 a = ptx::load16(dy + offset), b = ptx::load16(y + offset);
      sum = (products(a.x, b.x) + products(a.y, b.y)) + (products(a.z, b.z) + products(a.w, b.w));
    }
    for (int distance = kLanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (r < rows && chunk == 0) delta[r] = sum;
  }
  // Returns the sum of the products of two pairs of bf16.
  __device__ static float products(unsigned a, unsigned b) {
    return __uint_as_float(a << 16) * __uint_as_float(b << 16) + __uint_as_float(a & 0xffff0000u) * __uint_as_float(b & 0xffff0000u);
  }
};

template <int kWidth> void launch_delta(const Problem& problem, const Tensor& dy, const Tensor& y, const Tensor& delta) {
  const auto as_unsigned = [](int64_t n) { return static_cast<unsigned>(n); };
  const DeltaKernel<kWidth> kernel{as_unsigned(delta.size()), as_unsigned(problem.queries), as_unsigned(problem.heads), dy.data<bf16>(),
      y.data<bf16>(), delta.data<float>()};
  launch("attention' delta", dy.device(), thread_per(delta.size() * kernel.kLanes, kernel.kThreads), kernel);
}

}  // namespace flash

HOST bool flash_takes(const Problem& problem, Device device) {
  static const bool unwanted = is_switched_on("RICCI_WITHOUT_FLASH");  // for comparisons: gpu/ computes the same
  if (unwanted) return false;
  if (device_memory(device).shared_bytes() < flash_shared_bytes(problem.width)) return false;
  const int64_t k = problem.width, heads = problem.batches * problem.heads, blocks = 256;  // blocks: more than the rows of any block
  constexpr int64_t kPositions = int64_t{1} << 27;
  return (k == 32 || k == 64 || k == 96 || k == 128) && heads * problem.queries < kPositions && heads * problem.keys < kPositions &&
         problem.sees.cell < kFar / 2 / (problem.keys + blocks);
}

HOST bool flash_fits(const Problem& problem, const std::vector<ColumnSlice>& slices) {
  constexpr int64_t kBytes = 16, kElements = flash::kChunk;
  for (const ColumnSlice& slice : slices)
    if (const Arg& tensor = slice.tensor; tensor.dtype() != Dtype::bf16 || reinterpret_cast<uintptr_t>(tensor.raw()) % kBytes ||
                                          slice.offset % kElements || tensor.shape()[2] % kElements || tensor.shape()[2] >= 1 << 22 ||
                                          tensor.size() / kElements >= int64_t{1} << 30)
      return false;
  return flash_takes(problem, slices[0].tensor.device());
}

HOST void flash_backward(
    const Problem& problem, const Tensor& dy, const QueryKeyValue& inputs, const Outputs& out, const QueryKeyValue& gradients) {
  const Tensor delta_bnc = like(out.lse_bnc);
  with_constant<32, 64, 96, 128>(problem.width, [&]<int width>() { flash::launch_delta<width>(problem, dy, out.y_bcd, delta_bnc); });
  const flash::BackwardTensors tensors{problem, flash::Bounds(problem), static_cast<float>(problem.score_scale) * flash::kLog2E,
      head_rows<const bf16>(inputs.q), head_rows<const bf16>(inputs.k), head_rows<const bf16>(inputs.v), head_rows<const bf16>({dy}),
      out.lse_bnc.data<float>(), delta_bnc.data<float>(), head_rows<bf16>(gradients.q), head_rows<bf16>(gradients.k),
      head_rows<bf16>(gradients.v)};
  flash::key_gradient(tensors, dy.device());
  flash::query_gradient(tensors, dy.device());
}

}  // namespace attention_kernels

using namespace attention_kernels::flash;

CUDA_KERNEL(DeltaKernel<32>);
CUDA_KERNEL(DeltaKernel<64>);
CUDA_KERNEL(DeltaKernel<96>);
CUDA_KERNEL(DeltaKernel<128>);

}  // namespace ricci
