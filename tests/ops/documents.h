// Packed documents as the tests of ops make them.
#pragma once
#include <numeric>

#include "ops/shapes/shape_ops.h"
#include "tests/ops/values.h"

namespace ricci {

// The lengths of the documents in each row; those of a row add up to the row's.
using Packing = std::vector<std::vector<int64_t>>;

inline std::vector<int64_t> starts_of(const Packing& rows) {
  std::vector<int64_t> starts;
  for (const std::vector<int64_t>& row : rows) {
    int64_t start = 0;
    for (int64_t length : row) {
      starts.insert(starts.end(), static_cast<size_t>(length), start);
      start += length;
    }
  }
  return starts;
}

// Calls f(row, first position, length) for every document.
template <class F> void each_document(const Packing& rows, const F& f) {
  for (size_t b = 0; b < rows.size(); ++b) {
    int64_t first = 0;
    for (int64_t length : rows[b]) {
      f(static_cast<int64_t>(b), first, length);
      first += length;
    }
  }
}

// The positions of one document, [1 length d] of x_bcd.
inline Tensor document_of(const Tensor& x_bcd, int64_t row, int64_t first, int64_t length) {
  return slice(slice(x_bcd, 0, row, 1), 1, first, length).detached();
}

}  // namespace ricci
