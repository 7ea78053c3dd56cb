#pragma once
#include <vector>

#include "autograd/arg.h"

namespace ricci {

// Ops on shapes and the order of elements. All but cast work for every dtype, i64 included. An index can be negative: -1 is the innermost.

// A view of x with the new shape: its elements keep their order. Error: the number of elements differs.
Tensor reshape(const Arg& x, const Shape& shape);

// The elements first .. first + count - 1 of one index; a view if all outer indices have one element.
// Errors: the index or one of the elements does not exist.
Tensor slice(const Arg& x, int index, int64_t first, int64_t count);

// The parts one after another along an index. Errors: the list is empty; the parts differ in more than the extent of that index.
Tensor concatenate(const std::vector<Arg>& parts, int index);

// A copy with permuted indices: index i of the result is index order[i] of x. Error: order is not a permutation.
Tensor permute(const Arg& x, const std::vector<int>& order);
Tensor transpose(const Arg& x, int i, int j);  // exchanges two indices

// The values of x, rounded to another floating-point dtype.
Tensor cast(const Arg& x, Dtype dtype);

}  // namespace ricci
