// The implementation that a GPU takes: tensor cores wherever there is a way to them.
#include <atomic>
#include <cstdio>

#include "ops/attention/flash/flash.h"
#include "ops/attention/kernels.h"

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

struct Path {
  decltype(&blocks_forward) forward;
  decltype(&blocks_backward) backward;
};
constexpr Path kPaths[] = {{flash_forward, flash_backward}, {padded_forward, padded_backward}, {products_forward, products_backward},
    {blocks_forward, blocks_backward}};  // in the order of GpuPath

const Path& path_of(const Problem& problem, const std::vector<Rows>& views) {
  const GpuPath path = gpu_path(problem, views);
  if (path == GpuPath::blocks && views[0].tensor.dtype() == Dtype::bf16) say_slow(problem);
  return kPaths[static_cast<size_t>(path)];
}

}  // namespace

GpuPath gpu_path(const Problem& problem, const std::vector<Rows>& views) {
  if (views[0].tensor.dtype() != Dtype::bf16) return GpuPath::blocks;
  if (flash_fits(problem, views)) return GpuPath::flash;
  if (padding_fits(problem, views[0].tensor.device())) return GpuPath::padded;
  return products_fit(problem) ? GpuPath::products : GpuPath::blocks;
}

void forward_gpu(const Problem& problem, const Views& inputs, const Outputs& out) {
  path_of(problem, {inputs.q, inputs.k, inputs.v, {out.y_bcd}}).forward(problem, inputs, out);
}

void backward_gpu(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients) {
  path_of(problem, {inputs.q, inputs.k, inputs.v, {out.y_bcd}, {dy}, gradients.q, gradients.k, gradients.v})
      .backward(problem, dy, inputs, out, gradients);
}

}  // namespace ricci::attention_kernels
