// y = factor x, repeated along the indices that are missing or 1 in x. Their stride in x is 0, so nothing is copied.
//   bytes   4 (n + N) from n to N numbers in f32, half in bf16
//   floor   N = 65,536 x 768 in bf16 on an H200: 0.10 GB at 4.8 TB/s 0.02 ms
#include "ops/elements/broadcast.h"

#include <algorithm>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/verbs/elements.h"

namespace ricci {
namespace broadcast_kernels {

template <class T> struct Repeat {
  const T* x;
  T* y;
  Accumulator<T> factor;
  Strided<1> s;
  HD void operator()(int64_t i) const {
    int64_t offsets[1];
    s.locate(i, offsets);
    y[i] = T(factor * Accumulator<T>(x[offsets[0]]));
  }
};

template <class T> struct RepeatStretch {
  const T* x;
  T* y;
  Accumulator<T> factor;
  bool constant;  // the stretch is one element that repeats
  HD void operator()(const int64_t (&offsets)[1], int64_t i, int64_t count) const {
    const T* from = x + offsets[0];
    T* result = y + i;
    const Accumulator<T> by = factor, value = by * Accumulator<T>(*from);
    if (constant) for_vector(count, [=](int64_t j) { result[j] = T(value); });
    else for_vector(count, [=](int64_t j) { result[j] = T(by * Accumulator<T>(from[j])); });
  }
};

}  // namespace broadcast_kernels

using namespace broadcast_kernels;

HOST Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape shape;
  for (int d = 0; d < rank; ++d) {
    const int i = d - rank + a.rank(), j = d - rank + b.rank();
    const int64_t in_a = i < 0 ? 1 : a[i], in_b = j < 0 ? 1 : b[j];
    if (in_a != in_b && in_a != 1 && in_b != 1)
      fail("{}: {} and {} do not broadcast (the extents {} and {} are neither equal nor 1)", {op, show(a), show(b), in_a, in_b});
    shape.push_back(in_a == 1 ? in_b : in_a);
  }
  return shape;
}

HOST Tensor broadcast(const Tensor& x, const Shape& shape, double factor) {
  const Shape together = broadcast_shape("broadcast", x.shape(), shape);
  if (!(together == shape)) fail("broadcast: {} cannot be repeated to {}", {show(x.shape()), show(shape)});
  Tensor y = like(x, shape);  // throws for a size that does not fit
  const Strided<1> s = broadcast_strides(shape, x.shape());
  with_dtype(x, [&]<class T>(T) {
    const Accumulator<T> by(factor);
    if (x.device() == Device::cpu) return for_strided(s, RepeatStretch<T>{x.data<T>(), y.data<T>(), by, s.stride[0][s.rank - 1] == 0});
    const Repeat<T> f{x.data<T>(), y.data<T>(), by, s};
    launch("broadcast", x.device(), thread_per(y.size()), ElementKernel<Repeat<T>>{y.size(), f});
  });
  return y;
}

CUDA_ELEMENTS(Repeat);

}  // namespace ricci
