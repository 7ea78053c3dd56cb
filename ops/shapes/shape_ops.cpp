// reshape, slice, concatenate, permute, cast: elements only move. The backward pass of each op is another of these ops.
#include "ops/shapes/shape_ops.h"

#include <numeric>
#include <utility>

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/shapes/strided.h"

namespace ricci {
namespace {

// Returns the index as 0 .. rank-1.
int checked_index(const char* op, const Shape& shape, int index) {
  const int position = index < 0 ? index + shape.rank() : index;
  if (position < 0 || position >= shape.rank()) fail("{}: index {} does not exist in {}", {op, index, show(shape)});
  return position;
}

// Returns the number of elements outside of an index, and inside of it.
std::pair<int64_t, int64_t> around(const Shape& shape, int index) {
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < index; ++d) outer *= shape[d];
  for (int d = index + 1; d < shape.rank(); ++d) inner *= shape[d];
  return {outer, inner};
}

// Copies `count` elements of an index, from source_first on in `source` to target_first in `target`.
void copy_range(
    const char* name, const Tensor& source, int64_t source_first, const Tensor& target, int64_t target_first, int index, int64_t count) {
  const auto [outer, inner] = around(source.shape(), index);
  Strided<2> s;
  s.push(outer, {source.shape()[index] * inner, target.shape()[index] * inner});
  s.push(count * inner, {1, 1});
  copy_strided(name, source, source_first * inner, target, target_first * inner, s);
}

Tensor slice_of(const Tensor& x, int index, int64_t first, int64_t count) {
  const auto [outer, inner] = around(x.shape(), index);
  Shape shape = x.shape();
  shape.set(index, count);
  if (outer == 1) return x.detached().reshaped({x.shape()[index], inner}).rows(first, count).reshaped(shape);
  Tensor y = like(x, shape);
  copy_range("slice", x, first, y, 0, index, count);
  return y;
}

Tensor permuted(const Tensor& x, const std::vector<int>& order) {
  const int rank = x.shape().rank();
  int64_t in_x[Shape::kMaxRank] = {}, step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    in_x[d] = step;
    step *= x.shape()[d];
  }
  Shape shape;
  for (int d : order) shape.push_back(x.shape()[d]);
  Strided<2> s;
  for (int d = 0; d < rank; ++d) {
    step = 1;
    for (int inside = d + 1; inside < rank; ++inside) step *= shape[inside];
    s.push(shape[d], {in_x[order[static_cast<size_t>(d)]], step});
  }
  Tensor y = like(x, shape);
  copy_strided("permute", x, 0, y, 0, s);
  return y;
}

// Returns the inverse of `order`: d is at position order[d].
std::vector<int> checked_order(const Shape& shape, const std::vector<int>& order) {
  std::vector<int> inverse(order.size(), -1);
  bool good = static_cast<int>(order.size()) == shape.rank();
  for (size_t d = 0; d < order.size() && good; ++d) {
    good = order[d] >= 0 && order[d] < shape.rank() && inverse[static_cast<size_t>(order[d])] < 0;
    if (good) inverse[static_cast<size_t>(order[d])] = static_cast<int>(d);
  }
  if (good) return inverse;
  std::string text;
  for (int d : order) text.append(" ").append(std::to_string(d));
  fail("permute: the order is{}, expected each index of {} once", {text, show(shape)});
}

Shape joined_shape(const std::vector<Arg>& parts, int index) {
  Shape shape = parts[0].shape();
  int64_t total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    Shape rest = part.shape();
    if (rest.rank() == shape.rank()) {
      if (__builtin_add_overflow(total, rest[index], &total)) fail("concatenate: the parts are larger than any memory");
      rest.set(index, shape[index]);
    }
    if (!(rest == shape) || part.dtype() != parts[0].dtype() || part.device() != parts[0].device())
      fail("concatenate: part {} is {} {} on {}, expected to match part 0 ({} {} on {}) except along index {}",
          {i, name_of(part.dtype()), show(part.shape()), name_of(part.device()), name_of(parts[0].dtype()), show(shape),
              name_of(parts[0].device()), index});
  }
  shape.set(index, total);
  return shape;
}

}  // namespace

Tensor reshape(const Arg& x, const Shape& shape) {
  DIMS(any_dtype(x));
  return record("reshape", {x}, Moved{x.detached().reshaped(shape)}, keep(x.shape()),
      [](const Tensor& dy, const Shape& shape) -> Grads { return {dy.reshaped(shape)}; });
}

Tensor slice(const Arg& x, int index, int64_t first, int64_t count) {
  DIMS(any_dtype(x));
  const int position = checked_index("slice", x.shape(), index);
  if (first < 0 || count < 0 || count > x.shape()[position] - first)
    fail("slice: {} elements from element {} on do not all exist in index {} of {}", {count, first, position, show(x.shape())});
  return record("slice", {x}, Moved{slice_of(x, position, first, count)}, keep(x.shape(), position, first),
      [](const Tensor& dy, const Shape& shape, int position, int64_t first) -> Grads {
        const Tensor dx = zeros(shape, dy.dtype(), dy.device());
        copy_range("slice'", dy, 0, dx, first, position, dy.shape()[position]);
        return {dx};
      });
}

Tensor concatenate(const std::vector<Arg>& parts, int index) {
  if (parts.empty()) fail("concatenate: the list of parts is empty");
  for (size_t i = 0; i < parts.size(); ++i)
    if (!parts[i]) fail("concatenate: part {} is empty", {i});
  const int position = checked_index("concatenate", parts[0].shape(), index);
  const Tensor y = like(parts[0], joined_shape(parts, position));
  std::vector<int64_t> counts;
  int64_t first = 0;
  for (const Tensor& part : parts) {
    counts.push_back(part.shape()[position]);
    copy_range("concatenate", part, 0, y, first, position, counts.back());
    first += counts.back();
  }
  return record("concatenate", parts, Moved{y}, keep(counts, position),
      [](const Tensor& dy, const std::vector<int64_t>& counts, int position) -> Grads {
        Grads dparts;
        int64_t first = 0;
        for (size_t i = 0; i < counts.size(); first += counts[i++])
          dparts.push_back(wants_gradient(static_cast<int>(i)) ? slice_of(dy, position, first, counts[i]) : Tensor());
        return dparts;
      });
}

Tensor permute(const Arg& x, const std::vector<int>& order) {
  DIMS(any_dtype(x));
  const std::vector<int> inverse = checked_order(x.shape(), order);
  return record("permute", {x}, Moved{permuted(x, order)}, keep(inverse),
      [](const Tensor& dy, const std::vector<int>& inverse) -> Grads { return {permuted(dy, inverse)}; });
}

Tensor transpose(const Arg& x, int i, int j) {
  DIMS(any_dtype(x));
  std::vector<int> order(static_cast<size_t>(x.shape().rank()));
  std::iota(order.begin(), order.end(), 0);
  const auto first = static_cast<size_t>(checked_index("transpose", x.shape(), i));
  const auto second = static_cast<size_t>(checked_index("transpose", x.shape(), j));
  std::swap(order[first], order[second]);
  return permute(x, order);
}

Tensor cast(const Arg& x, Dtype dtype) {
  DIMS(x);
  if (dtype == Dtype::i64) fail("cast: the dtype is i64, expected f32, f64 or bf16");
  return record("cast", {x}, convert(x, dtype), keep(), [](const Tensor& dy) -> Grads { return {convert(dy, gradient_dtype(0))}; });
}

}  // namespace ricci
