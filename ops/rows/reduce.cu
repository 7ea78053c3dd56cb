// y = f sum_i x_i over all elements, and y_oi = f sum_m x_omi over one index; f = 1 for a sum, 1/count for a mean.
// Backward: dx = f dy, repeated. A sum over an index reads contiguous memory: the innermost index is summed along rows, the outermost along
// columns, and any other index as sums of rows.
//   bytes   4 N for N numbers in f32, half in bf16; the backward pass writes the same number of bytes
//   floor   N = 65,536 x 768 in bf16 on an H200: 0.10 GB at 4.8 TB/s 0.02 ms
#include "ops/rows/reduce.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/view.h"
#include "cuda/device/device.h"
#include "cuda/verbs/columns.h"
#include "cuda/verbs/rows.h"
#include "ops/elements/broadcast.h"
#include "ops/rows/sum_rows.h"

namespace ricci {
namespace reduce_kernels {

template <class T> struct Partial {
  View<const T, 2> x_rc;
  double* partial_r;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const double sum = row.sum([&](int64_t c) { return static_cast<double>(Accumulator<T>(x_rc(r, c))); });
    row.once([&] { partial_r[r] = sum; });
  }
};
template <class T> struct Total {
  const double* partial_r;
  T* y;
  double factor;
  template <class Row> HD void operator()(int64_t, Row row) const {
    const double sum = row.sum([&](int64_t r) { return partial_r[r]; });
    row.once([&] { *y = T(static_cast<Accumulator<T>>(factor * sum)); });
  }
};

template <class T> struct Innermost {
  View<const T, 2> x_om;
  T* y_o;
  Accumulator<T> factor;
  template <class Row> HD void operator()(int64_t o, Row row) const {
    const auto sum = row.sum([&](int64_t m) { return Accumulator<T>(x_om(o, m)); });
    row.once([&] { y_o[o] = T(factor * sum); });
  }
};
template <class T> struct Outermost {
  using Value = Accumulator<T>;
  static constexpr int kSums = 1;
  View<const T, 2> x_mi;
  T* y_i;
  Value factor;
  HD void add(int64_t m, int64_t i, Value (&sum)[1]) const { sum[0] += Value(x_mi(m, i)); }
  HD void store(int64_t i, const Value (&sum)[1]) const { y_i[i] = T(factor * sum[0]); }
};
template <class T> using Middle = SumRows<T, RegularRows>;

HOST Tensor sum_all(const Tensor& x, double factor) {
  constexpr int64_t kChunk = 4096;
  const int64_t whole = x.size() / kChunk, rest = x.size() % kChunk, chunks = whole + (rest > 0);
  const Tensor partial_r = like(x, {chunks}, Dtype::f64);
  Tensor y = like(x, Shape{});
  with_dtype(x, [&]<class T>(T) {
    double* partial = partial_r.data<double>();
    for_rows("sum", x.device(), whole, kChunk, Partial<T>{{x.data<T>(), {whole, kChunk}}, partial});
    for_rows("sum", x.device(), rest > 0, rest, Partial<T>{{x.data<T>() + whole * kChunk, {1, rest}}, partial + whole});
    for_rows("sum", x.device(), 1, chunks, Total<T>{partial, y.data<T>(), factor});
  });
  return y;
}

// The extents outside of an index, of the index itself and inside of it.
struct Split {
  int64_t outer = 1, middle = 1, inner = 1;
  Shape without, with_one;  // x's shape without the index, and with an extent of 1 instead
};

HOST Split split_at(const char* op, const Shape& shape, int index) {
  const int rank = shape.rank(), position = index < 0 ? index + rank : index;
  if (position < 0 || position >= rank) fail("{}: index {} does not exist in {}", {op, index, show(shape)});
  Split s;
  s.middle = shape[position];
  for (int d = 0; d < rank; ++d) {
    if (d != position) (d < position ? s.outer : s.inner) *= shape[d];
    if (d != position) s.without.push_back(shape[d]);
    s.with_one.push_back(d == position ? 1 : shape[d]);
  }
  return s;
}

HOST Tensor sum_index(const Tensor& x, const Split& s, double factor) {
  constexpr int64_t kFew = 8, kGrain = 16384;
  const int64_t outer = s.outer, middle = s.middle, inner = s.inner;
  if (x.size() == 0) return zeros(s.without, x.dtype(), x.device());
  Tensor y = like(x, s.without);
  with_dtype(x, [&]<class T>(T) {
    const Accumulator<T> f(factor);
    const T* from = x.data<T>();
    T* sums = y.data<T>();
    if (inner == 1) return for_rows("sum", x.device(), outer, middle, Innermost<T>{{from, {outer, middle}}, sums, f});
    if (outer > kFew) {
      const int64_t grain = kGrain / (middle * inner) + 1;
      return sum_rows("sum", x.device(), outer, inner, grain, Middle<T>{from, sums, f, {middle, middle, 1}});
    }
    for (int64_t o = 0; o < outer; ++o)
      for_columns("sum", x.device(), middle, inner, Outermost<T>{{from + o * middle * inner, {middle, inner}}, sums + o * inner, f});
  });
  return y;
}

HOST Tensor record_total(const char* op, const Arg& x, double factor) {
  return record(op, {x}, sum_all(x, factor), keep(x.shape(), factor),
      [](const Tensor& dy, const Shape& shape, double factor) -> Grads { return {broadcast(dy, shape, factor)}; });
}

HOST Tensor record_totals(const char* op, const Arg& x, const Split& s, double factor) {
  return record(op, {x}, sum_index(x, s, factor), keep(x.shape(), s.with_one, factor),
      [](const Tensor& dy, const Shape& shape, const Shape& with_one, double factor) -> Grads {
        return {broadcast(dy.reshaped(with_one), shape, factor)};
      });
}

HOST double one_over(int64_t count, const Shape& shape) {
  if (count == 0) fail("mean: {} has no elements", {show(shape)});
  return 1.0 / static_cast<double>(count);
}

}  // namespace reduce_kernels

using namespace reduce_kernels;

HOST Tensor sum(const Arg& x) {
  DIMS(x);
  return record_total("sum", x, 1);
}

HOST Tensor mean(const Arg& x) {
  DIMS(x);
  return record_total("mean", x, one_over(x.size(), x.shape()));
}

HOST Tensor sum(const Arg& x, int index) {
  DIMS(x);
  return record_totals("sum", x, split_at("sum", x.shape(), index), 1);
}

HOST Tensor mean(const Arg& x, int index) {
  DIMS(x);
  const Split s = split_at("mean", x.shape(), index);
  return record_totals("mean", x, s, one_over(s.middle, x.shape()));
}

CUDA_ROWS(Partial);
CUDA_ROWS(Total);
CUDA_ROWS(Innermost);
CUDA_COLUMNS(Outermost);
CUDA_ROWS(Middle);

}  // namespace ricci
