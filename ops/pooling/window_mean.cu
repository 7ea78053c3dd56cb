// Each output is a separate sum over its window. A running sum would read less memory, but its rounding errors would grow along the
// sequence.
//   y_bcd = 1/n_c sum over t in W(c) of x_btd - x_bcd,   W(c): the n_c positions around c, see MeanWindow;  0 - x if n_c = 0
//   dx_btd = sum over the c with t in W(c) of dy_bcd / n_c - dy_btd
// and over full sequences of n_b positions:    y_bd = 1/n_b sum_t x_btd,   dx_btd = dy_bd / n_b
//   bytes   8 N for N numbers in f32, 4 N in bf16, each way; the other rows of a window come from the cache
#include "ops/pooling/window_mean.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/verbs/rows.h"
#include "ops/pooling/lengths.h"

namespace ricci {
namespace window_mean_kernels {

// The window of position c is c - back .. c + ahead.
struct Extent {
  int64_t back, ahead;
  Lengths lengths;
  HD int64_t first(int64_t c) const { return c > back ? c - back : 0; }
  HD int64_t end(int64_t b, int64_t c) const {
    const int64_t length = lengths.length_of(b);
    return c + ahead + 1 < length ? c + ahead + 1 : length;
  }
  HD int64_t count(int64_t b, int64_t c) const {
    const int64_t n = end(b, c) - first(c);
    return n > 0 ? n : 0;
  }
  // Returns the end of the positions that have t in their windows.
  HD int64_t end_of_windows(int64_t t) const { return t + back + 1 < lengths.context ? t + back + 1 : lengths.context; }
};

template <class T> struct Forward {
  using A = Accumulator<T>;
  const T* x_bcd;
  T* y_bcd;
  Extent extent;

  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t context = extent.lengths.context, b = r / context, c = r % context, n = extent.count(b, c), d = row.n;
    const T* const window = x_bcd + (b * context + extent.first(c)) * d;
    const A share = n ? A(1) / A(n) : A(0);
    row.each([&](int64_t i) {
      A sum = 0;
      for (int64_t t = 0; t < n; ++t) sum += A(window[t * d + i]);
      y_bcd[r * d + i] = T(sum * share - A(x_bcd[r * d + i]));
    });
  }
};

template <class T> struct Backward {
  using A = Accumulator<T>;
  const T* dy_bcd;
  T* dx_bcd;
  Extent extent;

  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t context = extent.lengths.context, b = r / context, t = r % context, d = row.n;
    // Position t is in the windows of t - ahead .. t + back, unless it is padding.
    const bool counts = t < extent.lengths.length_of(b);
    const int64_t first = t > extent.ahead ? t - extent.ahead : 0, end = extent.end_of_windows(t);
    row.each([&](int64_t i) {
      A sum = 0;
      for (int64_t c = first; c < end && counts; ++c) sum += A(dy_bcd[(b * context + c) * d + i]) / A(extent.count(b, c));
      dx_bcd[r * d + i] = T(sum - A(dy_bcd[r * d + i]));
    });
  }
};

template <class T> struct MeanOfSequence {
  using A = Accumulator<T>;
  const T* x_bcd;
  T* y_bd;
  Lengths lengths;
  template <class Row> HD void operator()(int64_t b, Row row) const {
    const int64_t n = lengths.length_of(b), d = row.n;
    const T* const sequence = x_bcd + b * lengths.context * d;
    row.each([&](int64_t i) {
      A sum = 0;
      for (int64_t t = 0; t < n; ++t) sum += A(sequence[t * d + i]);
      y_bd[b * d + i] = T(n ? sum / A(n) : A(0));
    });
  }
};

template <class T> struct SpreadOverSequence {
  using A = Accumulator<T>;
  const T* dy_bd;
  T* dx_bcd;
  Lengths lengths;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t b = r / lengths.context, t = r % lengths.context, n = lengths.length_of(b), d = row.n;
    row.each([&](int64_t i) { dx_bcd[r * d + i] = T(t < n ? A(dy_bd[b * d + i]) / A(n) : A(0)); });
  }
};

HOST Extent make_extent(const MeanWindow& window, const Tensor& lengths_b, int64_t context) {
  const int64_t back = window.causal ? window.window - 1 : (window.window - 1) / 2;
  const int64_t in_context = min(back, context);  // position + back stays below 2^63
  return {in_context, window.causal ? 0 : in_context, lengths_of(lengths_b, context)};
}

}  // namespace window_mean_kernels

using namespace window_mean_kernels;

HOST Tensor window_mean_difference(const Arg& x_bcd, const MeanWindow& window, const Arg& lengths_b) {
  const Dims n = DIMS(x_bcd, optional(i64(lengths_b)));
  if (window.window < 1) fail("window_mean_difference: the window is {}, expected 1 or more", {window.window});
  if (!window.causal && window.window % 2 == 0)
    fail("window_mean_difference: the window is {} and not causal, expected an odd number", {window.window});
  check_lengths("window_mean_difference", lengths_b, n['c']);
  const Tensor y_bcd = like(x_bcd);
  for_rows_of<Forward>("window_mean_difference", n['b'] * n['c'], n['d'], x_bcd, y_bcd, make_extent(window, lengths_b, n['c']));
  return record("window_mean_difference", {x_bcd}, y_bcd, keep(window, Tensor(lengths_b)),
      [](const Tensor& dy_bcd, const MeanWindow& window, const Tensor& lengths_b) -> Grads {
        const Tensor dx_bcd = like(dy_bcd);
        const Shape& shape = dy_bcd.shape();
        for_rows_of<Backward>(
            "window_mean_difference'", shape[0] * shape[1], shape[2], dy_bcd, dx_bcd, make_extent(window, lengths_b, shape[1]));
        return {dx_bcd};
      });
}

HOST Tensor mean_over_positions(const Arg& x_bcd, const Arg& lengths_b) {
  const Dims n = DIMS(x_bcd, optional(i64(lengths_b)));
  check_lengths("mean_over_positions", lengths_b, n['c']);
  const Tensor y_bd = like(x_bcd, Shape{n['b'], n['d']});
  for_rows_of<MeanOfSequence>("mean_over_positions", n['b'], n['d'], x_bcd, y_bd, lengths_of(lengths_b, n['c']));
  return record("mean_over_positions", {x_bcd}, y_bd, keep(x_bcd.shape(), Tensor(lengths_b)),
      [](const Tensor& dy_bd, const Shape& shape, const Tensor& lengths_b) -> Grads {
        const Tensor dx_bcd = like(dy_bd, shape);
        for_rows_of<SpreadOverSequence>(
            "mean_over_positions'", shape[0] * shape[1], shape[2], dy_bd, dx_bcd, lengths_of(lengths_b, shape[1]));
        return {dx_bcd};
      });
}

CUDA_ROWS(Forward);
CUDA_ROWS(Backward);
CUDA_ROWS(MeanOfSequence);
CUDA_ROWS(SpreadOverSequence);

}  // namespace ricci
