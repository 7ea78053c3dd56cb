// A kernel's view of a tensor: a pointer and extents, indexed like the formula: y_rc(r, c). It does not own the memory,
// since a GPU kernel could not count the owners.
#pragma once
#include <type_traits>

#include "core/tensor.h"

namespace ricci {

template <class T, int Rank> struct View {
  T* data;
  int64_t extent[Rank];

  template <class... Indices> HD T& operator()(Indices... indices) const {
    static_assert(sizeof...(Indices) == Rank, "one index per letter of the suffix");
    int64_t offset = 0;
    int d = 0;
    ((offset = offset * extent[d++] + static_cast<int64_t>(indices)), ...);
    return data[offset];
  }
};

// The address of the first element; null for an empty tensor.
template <class T> T* pointer(const Tensor& t) { return t ? t.data<std::remove_const_t<T>>() : nullptr; }

// Extra leading indices are merged into the first; missing ones have extent 1.
template <class T, int Rank> View<T, Rank> view(const Tensor& t) {
  View<T, Rank> v{pointer<T>(t), {}};
  const int merged = t.shape().rank() - Rank;
  for (int d = 0; d < Rank; ++d) v.extent[d] = d + merged >= 0 ? t.shape()[d + merged] : 1;
  for (int d = 0; d < merged; ++d) v.extent[0] *= t.shape()[d];
  return v;
}

}  // namespace ricci
