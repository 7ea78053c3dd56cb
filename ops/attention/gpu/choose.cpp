// The implementation that a GPU takes: tensor cores wherever there is a way to them.
#include <atomic>
#include <cstdio>

#include "ops/attention/flash/flash.h"
#include "ops/attention/kernels.h"
#include "ops/attention/wide/wide.h"

namespace ricci::attention_kernels {
namespace {

// Once for the life of the program.
void say_slow(const Problem& problem) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::fprintf(stderr,
      "attention: heads of width %lld with %lld queries and %lld keys do not fit the tensor cores; bf16 is as slow as f32\n",
      static_cast<long long>(problem.width), static_cast<long long>(problem.queries), static_cast<long long>(problem.keys));
}

bool all_fit(const Problem& problem, const std::vector<Rows>& views) {
  for (const Rows& view : views)
    if (!flash_fits(problem, {view})) return false;
  return true;
}

}  // namespace

GpuPath gpu_path(const Problem& problem, const std::vector<Rows>& views) {
  if (views[0].tensor.dtype() != Dtype::bf16) return GpuPath::blocks;
  if (all_fit(problem, views)) return GpuPath::flash;
  if (padding_fits(problem, views[0].tensor.device())) return GpuPath::padded;
  return products_fit(problem) ? GpuPath::products : GpuPath::blocks;
}

void forward_gpu(const Problem& problem, const Views& inputs, const Outputs& out) {
  switch (gpu_path(problem, {inputs.q, inputs.k, inputs.v, {out.y_bcd}})) {
    case GpuPath::flash: return flash_forward(problem, inputs, out);
    case GpuPath::padded: return padded_forward(problem, inputs, out);
    case GpuPath::products: return products_forward(problem, inputs, out);
    case GpuPath::blocks: break;
  }
  if (out.y_bcd.dtype() == Dtype::bf16) say_slow(problem);
  blocks_forward(problem, inputs, out);
}

void backward_gpu(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients) {
  switch (gpu_path(problem, {inputs.q, inputs.k, inputs.v, {out.y_bcd}, {dy}, gradients.q, gradients.k, gradients.v})) {
    case GpuPath::flash: return flash_backward(problem, dy, inputs, out, gradients);
    case GpuPath::padded: return padded_backward(problem, dy, inputs, out, gradients);
    case GpuPath::products: return products_backward(problem, dy, inputs, out, gradients);
    case GpuPath::blocks: break;
  }
  if (dy.dtype() == Dtype::bf16) say_slow(problem);
  blocks_backward(problem, dy, inputs, out, gradients);
}

}  // namespace ricci::attention_kernels
