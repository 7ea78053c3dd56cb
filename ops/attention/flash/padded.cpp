// Heads of other widths: the flash kernels are compiled for four widths, so the inputs are copied into tensors with wider heads. The
// additional columns are zeros.
#include "cuda/device/device.h"
#include "ops/attention/flash/flash.h"
#include "ops/shapes/strided.h"

namespace ricci::attention_kernels {
namespace {

Problem widened(Problem problem) {
  problem.width = (problem.width + 31) / 32 * 32;
  return problem;
}

bool same(const ColumnSlice& a, const ColumnSlice& b) { return a.tensor.raw() == b.tensor.raw() && a.offset == b.offset; }

// The elements of a slice and of its copy with wider heads: [sequence and position] [head] [column].
Strided<2> elements(const Problem& problem, const ColumnSlice& slice) {
  const int64_t wide = widened(problem).width, heads = problem.heads / slice.group;
  Strided<2> s;
  s.push(problem.batches * slice.tensor.shape()[1], {slice.tensor.shape()[2], heads * wide});
  s.push(heads, {problem.width, wide});
  s.push(problem.width, {1, 1});
  return s;
}

Tensor allocate_copy(const Problem& problem, const ColumnSlice& slice) {
  const Tensor& tensor = slice.tensor;
  const Shape shape{tensor.shape()[0], tensor.shape()[1], widened(problem).d() / slice.group};
  return widened(problem).width == problem.width ? like(tensor, shape) : zeros(shape, tensor.dtype(), tensor.device());
}

Tensor copy_wide(const Problem& problem, const ColumnSlice& slice) {
  const Tensor copy = allocate_copy(problem, slice);
  copy_strided("attention: pad", slice.tensor, slice.offset, copy, 0, elements(problem, slice));
  return copy;
}

void copy_back(const Problem& problem, const Tensor& copy, const ColumnSlice& slice) {
  Strided<2> reversed = elements(problem, slice);
  for (int d = 0; d < reversed.rank; ++d) std::swap(reversed.stride[0][d], reversed.stride[1][d]);
  copy_strided("attention: unpad", copy, 0, slice.tensor, slice.offset, reversed);
}

// Returns make(slice) for q, k and v. Equal slices share the result.
template <class Make> QueryKeyValue for_each_slice(const QueryKeyValue& slices, Make make) {
  const Tensor q = make(slices.q), k = same(slices.k, slices.q) ? q : make(slices.k);
  const Tensor shared = same(slices.v, slices.q) ? q : k;
  const int64_t group = slices.k.group;
  return {{q}, {k, 0, 0, group}, {same(slices.v, slices.q) || same(slices.v, slices.k) ? shared : make(slices.v), 0, 0, group}};
}

}  // namespace

bool padding_fits(const Problem& problem, Device device) {
  const Problem wide = widened(problem);
  return wide.width <= 128 && wide.d() < 1 << 22 && wide.batches * max(wide.queries, wide.keys) * wide.d() < int64_t{1} << 33 &&
         flash_takes(wide, device);
}

void padded_forward(const Problem& problem, const QueryKeyValue& inputs, const Outputs& out) {
  const QueryKeyValue wide_in = for_each_slice(inputs, [&](const ColumnSlice& slice) { return copy_wide(problem, slice); });
  const Outputs wide_out{like(out.y_bcd, Shape{problem.batches, problem.queries, widened(problem).d()}), out.lse_bnc};
  flash_forward(widened(problem), wide_in, wide_out);
  copy_back(problem, wide_out.y_bcd, {out.y_bcd});
}

void padded_backward(
    const Problem& problem, const Tensor& dy, const QueryKeyValue& inputs, const Outputs& out, const QueryKeyValue& gradients) {
  const auto copy = [&](const ColumnSlice& slice) { return copy_wide(problem, slice); };
  const QueryKeyValue wide_in = for_each_slice(inputs, copy);
  const auto [q, k, v] = for_each_slice(gradients, [&](const ColumnSlice& slice) { return allocate_copy(problem, slice); });
  flash_backward(widened(problem), copy({dy}), wide_in, {copy({out.y_bcd}), out.lse_bnc}, {q, k, v});
  copy_back(problem, q.tensor, gradients.q);
  if (!same(gradients.k, gradients.q)) copy_back(problem, k.tensor, gradients.k);
  if (!same(gradients.v, gradients.q) && !same(gradients.v, gradients.k)) copy_back(problem, v.tensor, gradients.v);
}

}  // namespace ricci::attention_kernels
