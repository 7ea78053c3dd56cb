// Where the entries of a triangle of a k x k matrix stand when it is stored row by row without the other triangle, k (k + 1) / 2
// numbers.
#pragma once
#include <cstdint>

#include "core/host_device.h"

namespace ricci {

enum class Triangle : uint8_t {
  upper,  // of a symmetric matrix M: M_ij = M_ji for i <= j
  lower,  // a factor L of M = L L^T: L_ij for i >= j
};

HD int64_t packed_size(int64_t k) { return k * (k + 1) / 2; }
// The k whose triangle has so many entries; -1: none has.
inline int64_t packed_width(int64_t entries) {
  int64_t k = 0;
  while (packed_size(k) < entries) ++k;
  return packed_size(k) == entries ? k : -1;
}
HD int64_t packed_upper(int64_t i, int64_t j, int64_t k) { return i * k - i * (i - 1) / 2 + (j - i); }  // i <= j
HD int64_t packed_lower(int64_t i, int64_t j) { return i * (i + 1) / 2 + j; }                           // i >= j
HD bool in_triangle(Triangle triangle, int64_t i, int64_t j) { return triangle == Triangle::upper ? i <= j : i >= j; }
HD int64_t packed_at(Triangle triangle, int64_t i, int64_t j, int64_t k) {
  return triangle == Triangle::upper ? packed_upper(i, j, k) : packed_lower(i, j);
}

}  // namespace ricci
