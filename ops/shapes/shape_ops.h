#pragma once
#include <vector>

#include "autograd/arg.h"

namespace ricci {

// Shapes and the order of elements. All but cast take every dtype, i64 included. An index can be negative: -1 is the innermost.

// A view of x with another shape: its elements in their order. Error: another number of elements.
Tensor reshape(const Arg& x, const Shape& shape);

// The elements first .. first + count of one index; a view when no index outside it has more than one element.
// Errors: no such index, elements that do not exist.
Tensor slice(const Arg& x, int index, int64_t first, int64_t count);

// The parts one after another along an index. Errors: no parts; parts that differ in more than the extent of that index.
Tensor concatenate(const std::vector<Arg>& parts, int index);

// A copy with its indices in another order: index i of the result is index order[i] of x. Error: order is not a permutation.
Tensor permute(const Arg& x, const std::vector<int>& order);
Tensor transpose(const Arg& x, int i, int j);  // exchanges two indices

// The values of x, rounded to another floating-point dtype.
Tensor cast(const Arg& x, Dtype dtype);

}  // namespace ricci
