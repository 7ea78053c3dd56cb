// Windows of a convolution, written out as rows, so the convolution is a matrix product. s: cell size, K: kernel, h: history.
//   y_bj(dK+q) = x_b(h+(j+1)s-K+q)d, 0 before the sequence
//   dx_btd = sum of dy_bj(dK+q) over the windows j with position t as position q
//   bytes   N (4 + 4 K/s) for N numbers in f32, half in bf16, each way
#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/verbs/pieces.h"
#include "cuda/verbs/rows.h"
#include "ops/scales/cells.h"

namespace ricci {
namespace cell_windows_kernels {

struct Windows {
  int64_t context, size, kernel, history;
  HD int64_t count() const { return (context - history) / size; }
  HD int64_t first(int64_t j) const { return history + (j + 1) * size - kernel; }  // position; it can be negative
};

template <class T> struct Forward {
  const T* x_bcd;
  T* y_bmz;
  Windows windows;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t d = row.n, kernel = windows.kernel, count = windows.count(), first = windows.first(r % count);
    interleave(row, x_bcd + (r / count * windows.context + first) * d, d, y_bmz + r * d * kernel, kernel,
        [=](int64_t q) { return first + q >= 0; });
  }
};

template <class T> struct Backward {
  using A = Accumulator<T>;
  const T* dy_bmz;
  T* dx_bcd;
  Windows windows;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t d = row.n, kernel = windows.kernel, count = windows.count(), b = r / windows.context, t = r % windows.context;
    // The last window that starts at or before t; with kernel >= size both terms of the quotient are positive.
    const int64_t begun = (t - windows.history + kernel) / windows.size - 1, last = begun < count ? begun : count - 1;
    const auto sum_at = [&](int64_t i) {
      A sum = 0;
      for (int64_t j = last; j >= 0 && windows.first(j) + kernel > t; --j)
        sum += A(dy_bmz[((b * count + j) * d + i) * kernel + t - windows.first(j)]);
      return sum;
    };
    T* const dx = dx_bcd + r * d;
    row.each_piece([&](auto piece) { piece.store(dx, map(sum_at, piece.index())); }, dx);
  }
};

}  // namespace cell_windows_kernels

using namespace cell_windows_kernels;

HOST Tensor cell_windows(const Arg& x_bcd, int64_t size, int64_t kernel, int64_t history) {
  const Dims n = DIMS(x_bcd);
  if (size < 1) fail("cell_windows: the cell size is {}, expected 1 or more", {size});
  if (kernel < size) fail("cell_windows: the kernel has {} positions, expected at least the {} of a cell", {kernel, size});
  if (history < 0 || history > kernel - size || history > n['c'])
    fail("cell_windows: the history has {} positions, expected 0 .. kernel - size = {}, and at most the {} of x_bcd",
        {history, kernel - size, n['c']});
  const Windows windows{n['c'], size, kernel, history};
  const Tensor y_bmdq = like(x_bcd, Shape{n['b'], windows.count(), n['d'], kernel});  // checks that d * kernel fits
  const Tensor y_bmz = y_bmdq.reshaped({n['b'], windows.count(), n['d'] * kernel});
  for_rows_of<Forward>("cell_windows", n['b'] * windows.count(), n['d'], x_bcd, y_bmz, windows);
  return record("cell_windows", {x_bcd}, y_bmz, keep(x_bcd.shape(), windows),
      [](const Tensor& dy_bmz, const Shape& shape, const Windows& windows) -> Grads {
        const Tensor dx_bcd = like(dy_bmz, shape);
        for_rows_of<Backward>("cell_windows'", shape[0] * shape[1], shape[2], dy_bmz, dx_bcd, windows);
        return {dx_bcd};
      });
}

CUDA_ROWS(Forward);
CUDA_ROWS(Backward);

}  // namespace ricci
