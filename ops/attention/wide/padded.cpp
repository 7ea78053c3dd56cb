#include "cuda/device/device.h"
#include "ops/attention/flash/flash.h"
#include "ops/shapes/strided.h"

namespace ricci::attention_kernels {
namespace {

Problem widened(Problem problem) {
  problem.width = (problem.width + 31) / 32 * 32;
  return problem;
}

bool same(const Rows& a, const Rows& b) { return a.tensor.raw() == b.tensor.raw() && a.offset == b.offset; }

// The elements of a view, `positions` rows for each sequence, [sequence and position] [head] [column], beside the elements of its copy
// with wider heads.
Strided<2> elements(const Problem& problem, const Rows& view, int64_t positions) {
  const int64_t wide = widened(problem).width;
  Strided<2> s;
  s.push(problem.batches * positions, {view.tensor.shape()[2], problem.heads / view.group * wide});
  s.push(problem.heads / view.group, {problem.width, wide});
  s.push(problem.width, {1, 1});
  return s;
}

Tensor room(const Problem& problem, const Rows& view) {
  const Tensor& tensor = view.tensor;
  const Shape shape{tensor.shape()[0], tensor.shape()[1], widened(problem).d() / view.group};
  return widened(problem).width == problem.width ? like(tensor, shape) : zeros(shape, tensor.dtype(), tensor.device());
}

Tensor copied(const Problem& problem, const Rows& view) {
  const Tensor copy = room(problem, view);
  copy_strided("attention: pad", view.tensor, view.offset, copy, 0, elements(problem, view, view.tensor.shape()[1]));
  return copy;
}

// The columns of the heads, back from a copy into a view.
void give_back(const Problem& problem, const Tensor& copy, const Rows& view) {
  const Strided<2> there = elements(problem, view, view.tensor.shape()[1]);
  Strided<2> back = there;
  for (int d = 0; d < back.rank; ++d) {
    back.stride[0][d] = there.stride[1][d];
    back.stride[1][d] = there.stride[0][d];
  }
  copy_strided("attention: unpad", copy, 0, view.tensor, view.offset, back);
}

// make(view) for q, k and v; views of the same columns share what is made.
template <class Make> Views each_view(const Views& views, Make make) {
  const Tensor q = make(views.q), k = same(views.k, views.q) ? q : make(views.k);
  const Tensor other = same(views.v, views.q) ? q : k;
  const int64_t group = views.k.group;
  return {{q}, {k, 0, 0, group}, {same(views.v, views.q) || same(views.v, views.k) ? other : make(views.v), 0, 0, group}};
}

}  // namespace

bool padding_fits(const Problem& problem, Device device) {
  const Problem wide = widened(problem);
  return wide.width <= 128 && wide.d() < 1 << 22 && wide.batches * max(wide.queries, wide.keys) * wide.d() < int64_t{1} << 33 &&
         flash_takes(wide, device);
}

void padded_forward(const Problem& problem, const Views& inputs, const Outputs& out) {
  const Views wide_in = each_view(inputs, [&](const Rows& view) { return copied(problem, view); });
  const Outputs wide_out{like(out.y_bcd, Shape{problem.batches, problem.queries, widened(problem).d()}), out.lse_bnc};
  flash_forward(widened(problem), wide_in, wide_out);
  give_back(problem, wide_out.y_bcd, {out.y_bcd});
}

void padded_backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients) {
  const auto copy = [&](const Rows& view) { return copied(problem, view); };
  const Views wide_in = each_view(inputs, copy);
  const Views wide_gradients = each_view(gradients, [&](const Rows& view) { return room(problem, view); });
  flash_backward(widened(problem), copy({dy}), wide_in, {copy({out.y_bcd}), out.lse_bnc}, wide_gradients);
  give_back(problem, wide_gradients.q.tensor, gradients.q);
  if (!same(gradients.k, gradients.q)) give_back(problem, wide_gradients.k.tensor, gradients.k);
  if (!same(gradients.v, gradients.q) && !same(gradients.v, gradients.k)) give_back(problem, wide_gradients.v.tensor, gradients.v);
}

}  // namespace ricci::attention_kernels
