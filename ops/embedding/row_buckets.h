#pragma once
#include "core/tensor.h"

namespace ricci {

// The rows of each id. rows_k lists all rows, sorted by id and then by row. The rows of id v are rows_k[start_u[v]] .. rows_k[start_u[v +
// 1] - 1]. Both are i64, on the device of the ids.
struct RowBuckets {
  Tensor start_u, rows_k;  // u = vocabulary + 1
};

// Sorts by counting; on the GPU, by one byte of the id at a time. No atomics are used, so the result is always the same. Ids outside
// 0 .. vocabulary-1 are dropped. Errors: 2^31 or more ids, or a vocabulary size of 2^31 or more.
RowBuckets bucket_rows(const Tensor& ids, int64_t vocabulary);

}  // namespace ricci
