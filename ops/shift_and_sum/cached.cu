// Decoding: for every level r, in ascending order, position t reads V^r[t - 2^r] from the ring of that level, overwrites it with V^r[t],
// and continues with V^{r+1}[t] = V^r[t] + c[t, r] V^r[t - 2^r]. A ring of 2^r slots is enough: only position t + 2^r reads V^r[t].
//   bytes   3 R d numbers per position with R levels, 2 R d of them in the rings;  FLOPs 2 R d
#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/verbs/rows.h"
#include "ops/shift_and_sum/kernels.h"

namespace ricci {
namespace shift_and_sum_kernels {

// Row (sequence, slice) computes the columns of a slice at all new positions.
template <class T> struct Cached {
  static constexpr int64_t kSlice = 128;
  using A = Accumulator<T>;
  Problem problem;
  const T *v, *c;
  T *rings, *y;
  int64_t past, slots, slices;

  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t b = r / slices, first = r % slices * kSlice, d = problem.d();
    for (int64_t i = 0; i < problem.positions; ++i) {
      const int64_t position = b * problem.positions + i, t = past + i;
      row.each([&](int64_t x) {
        if (first + x >= d) return;
        const int64_t column = first + x, head = column / problem.width;
        const T* const coef = c + (position * problem.heads + head) * problem.levels;
        A value = A(v[position * d + column]);
        for (int level = 0; level < problem.used; ++level) {
          const int64_t shift = int64_t{1} << level;
          T* const slot = rings + (b * slots + shift - 1 + t % shift) * d + column;
          const A old = A(*slot);
          *slot = T(value);
          if (t >= shift) value += A(coef[level]) * old;
        }
        y[position * d + column] = T(value);
      });
    }
  }
};

}  // namespace shift_and_sum_kernels

using namespace shift_and_sum_kernels;

HOST Tensor shift_and_sum_cached(
    const Arg& v_bcd, const Arg& coef_bcx, Tensor& rings_bsd, int64_t past, const ShiftAndSumOptions& options) {
  const char* op = "shift_and_sum_cached";
  if (options.dropout != 0) fail("{}: dropout is {}, expected 0", {op, options.dropout});
  Problem problem = check(op, v_bcd, coef_bcx, options);
  Dims n;
  n.bind(op, "v_bcd, rings_bsd", {v_bcd, rings_bsd});
  const int64_t slots = n['s'];
  if ((slots & (slots + 1)) != 0) fail("{}: the rings have {} slots, expected one less than a power of two", {op, slots});
  if (past < 0 || past > INT64_MAX - n['c']) fail("{}: past is {}, expected 0 .. {}", {op, past, INT64_MAX - n['c']});
  problem.used = 0;
  while (problem.used < problem.levels && (int64_t{2} << problem.used) - 1 <= slots) ++problem.used;
  const Tensor y_bcd = like(v_bcd);
  with_dtype(v_bcd, [&]<class T>(T) {
    constexpr int64_t kSlice = Cached<T>::kSlice;
    const int64_t slices = (problem.d() + kSlice - 1) / kSlice;
    for_rows(op, v_bcd.device(), problem.batches * slices, kSlice,
        Cached<T>{problem, v_bcd.data<T>(), coef_bcx.data<T>(), rings_bsd.data<T>(), y_bcd.data<T>(), past, slots, slices});
  });
  rings_bsd.written();
  return record("shift_and_sum_cached", {v_bcd, coef_bcx}, y_bcd, keep(), no_backward);
}

CUDA_ROWS(Cached);

}  // namespace ricci
