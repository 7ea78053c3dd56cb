#pragma once
#include <vector>

#include "autograd/arg.h"

namespace ricci {

// Shapes and the order of elements. All but cast take every dtype, i64 included. An index may be negative: -1 is the
// innermost.

// The same elements, in the same order, under another shape: a view. Error: another number of elements.
Tensor reshape(const Arg& x, const Shape& shape);

// The elements first .. first + count of one index; a view when no index outside it has more than one element.
// Errors: no such index, elements that do not exist.
Tensor slice(const Arg& x, int index, int64_t first, int64_t count);

// The parts one after another along an index. Errors: no parts; parts that differ elsewhere than in the extent of that
// index.
Tensor concatenate(const std::vector<Arg>& parts, int index);

// Index i of the result is index order[i] of x, copied. Error: order is no permutation of x's indices.
Tensor permute(const Arg& x, const std::vector<int>& order);
Tensor transpose(const Arg& x, int i, int j);  // two indices exchanged

// The same values, rounded to another floating-point dtype.
Tensor cast(const Arg& x, Dtype dtype);

}  // namespace ricci
