// Mean and maximum of cells, one row at a time: adjacent columns are contiguous. s is the cell size.
//   mean:  y_bjd = 1/s sum_q x_b(js+q)d,   dx_b(js+q)d = dy_bjd / s,          q = 0 .. s-1
//   max:   y_bjd = max_q x_b(js+q)d,       dx_b(js+q)d = dy_bjd for the first q with the largest x
// dx is 0 after the last full cell.
//   bytes   N (4 + 4/s) for N numbers in f32, half in bf16, each way; the backward pass of max reads x again
#include "ops/scales/cells.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/verbs/elements.h"
#include "cuda/verbs/pieces.h"
#include "cuda/verbs/rows.h"

namespace ricci {
namespace cells_kernels {

struct Cells {
  int64_t context, size;
  HD int64_t count() const { return context / size; }
  // The first position of cell r % count of sequence r / count, as a row of x.
  HD int64_t first_row(int64_t r) const { return r / count() * context + r % count() * size; }
};

template <class T> struct MeanForward {
  using A = Accumulator<T>;
  static constexpr int kNeighbours = elements_of_piece<T>();
  const T* x_bcd;
  T* y_bmd;
  Cells cells;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t d = row.n, size = cells.size;
    const T* const x = x_bcd + cells.first_row(r) * d;
    T* const y = y_bmd + r * d;
    const A share = A(1) / A(size);
    row.each_piece(
        [&](auto piece) {
          auto sum = piece.all(A(0));
          for (int64_t q = 0; q < size; ++q) sum = sum + piece.load(x + q * d);
          piece.store(y, sum * share);
        },
        x, y);
  }
};

template <class T> struct MeanBackward {
  using A = Accumulator<T>;
  static constexpr int kNeighbours = elements_of_piece<T>();
  const T* dy_bmd;
  T* dx_bcd;
  Cells cells;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t d = row.n, j = r % cells.context / cells.size;
    const bool in_cell = j < cells.count();
    const T* const dy = dy_bmd + (in_cell ? r / cells.context * cells.count() + j : 0) * d;
    const A share = A(1) / A(cells.size);
    T* const dx = dx_bcd + r * d;
    row.each_piece([&](auto piece) { piece.store(dx, in_cell ? piece.load(dy) * share : piece.all(A(0))); }, dy, dx);
  }
};

// True if a later element of a column replaces the largest so far: of equal elements the first stays, and the last NaN replaces all.
template <class T> HD bool replaces(T value, T largest) {
  using A = Accumulator<T>;
  return A(value) > A(largest) || A(value) != A(value);
}

template <class T> struct MaxForward {
  static constexpr int kNeighbours = elements_of_piece<T>();
  const T* x_bcd;
  T* y_bmd;
  Cells cells;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t d = row.n, size = cells.size;
    const T* const x = x_bcd + cells.first_row(r) * d;
    T* const y = y_bmd + r * d;
    row.each_piece(
        [&](auto piece) {
          auto largest = piece.read(x);
          for (int64_t q = 1; q < size; ++q)
            largest = map([](T value, T before) { return replaces(value, before) ? value : before; }, piece.read(x + q * d), largest);
          piece.write(y, largest);
        },
        x, y);
  }
};

// One row per cell, and one per sequence for the positions after its last cell.
template <class T> struct MaxBackward {
  static constexpr int kNeighbours = elements_of_piece<T>();
  const T *x_bcd, *dy_bmd;
  T* dx_bcd;
  Cells cells;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t d = row.n, count = cells.count(), b = r / (count + 1), j = r % (count + 1);
    const bool after_last = j == count;
    const int64_t size = after_last ? cells.context - count * cells.size : cells.size;
    const T* const x = x_bcd + (b * cells.context + j * cells.size) * d;
    const T* const dy = dy_bmd + (after_last ? 0 : b * count + j) * d;
    T* const dx = dx_bcd + (b * cells.context + j * cells.size) * d;
    row.each_piece(
        [&](auto piece) {
          if (after_last) {
            for (int64_t q = 0; q < size; ++q) piece.write(dx + q * d, piece.all(T(0)));
            return;
          }
          auto largest = piece.read(x);
          auto place = piece.all(0);
          UNROLL(2)
          for (int q = 1; q < size; ++q) {
            const auto value = piece.read(x + q * d);
            place = map([q](T now, T before, int p) { return replaces(now, before) ? q : p; }, value, largest, place);
            largest = map([](T now, T before) { return replaces(now, before) ? now : before; }, value, largest);
          }
          const auto gradient = piece.read(dy);
          UNROLL(2)
          for (int q = 0; q < size; ++q) piece.write(dx + q * d, map([q](T g, int p) { return q == p ? g : T(0); }, gradient, place));
        },
        x, dy, dx);
  }
};

struct WholeCells {
  const int64_t* length_b;
  int64_t* cells_b;
  int64_t size;
  HD void operator()(int64_t b) const { cells_b[b] = length_b[b] / size; }
};

struct TextLengths {
  const int64_t* target_bc;
  int64_t* length_b;
  int64_t context;
  HD void operator()(int64_t b) const {
    int64_t end = context;  // the end of the targets
    while (end > 0 && target_bc[b * context + end - 1] < 0) --end;
    length_b[b] = end > 0 && end < context ? end + 1 : end;
  }
};

HOST void check_size(const char* op, int64_t size) {
  if (size < 1) fail("{}: the cell size is {}, expected 1 or more", {op, size});
}

template <template <class> class Forward> Tensor each_cell(const char* op, const Tensor& x_bcd, int64_t size) {
  check_size(op, size);
  const int64_t b = x_bcd.shape()[0], d = x_bcd.shape()[2];
  const Cells cells{x_bcd.shape()[1], size};
  const Tensor y_bmd = like(x_bcd, Shape{b, cells.count(), d});
  for_rows_of<Forward>(op, b * cells.count(), d, x_bcd, y_bmd, cells);
  return y_bmd;
}

}  // namespace cells_kernels

using namespace cells_kernels;

HOST Tensor cell_mean(const Arg& x_bcd, int64_t size) {
  DIMS(x_bcd);
  return record("cell_mean", {x_bcd}, each_cell<MeanForward>("cell_mean", x_bcd, size), keep(x_bcd.shape(), size),
      [](const Tensor& dy_bmd, const Shape& shape, int64_t size) -> Grads {
        const Tensor dx_bcd = like(dy_bmd, shape);
        for_rows_of<MeanBackward>("cell_mean'", shape[0] * shape[1], shape[2], dy_bmd, dx_bcd, Cells{shape[1], size});
        return {dx_bcd};
      });
}

HOST Tensor cell_max(const Arg& x_bcd, int64_t size) {
  DIMS(x_bcd);
  return record("cell_max", {x_bcd}, each_cell<MaxForward>("cell_max", x_bcd, size), keep(x_bcd, size),
      [](const Tensor& dy_bmd, const Tensor& x_bcd, int64_t size) -> Grads {
        const Tensor dx_bcd = like(x_bcd);
        const Shape& shape = x_bcd.shape();
        const Cells cells{shape[1], size};
        for_rows_of<MaxBackward>("cell_max'", shape[0] * (cells.count() + 1), shape[2], x_bcd, dy_bmd, dx_bcd, cells);
        return {dx_bcd};
      });
}

HOST Tensor whole_cells(const Tensor& lengths_b, int64_t size) {
  DIMS(i64(lengths_b));
  check_size("whole_cells", size);
  const Tensor cells_b = like(lengths_b);
  for_each_element(
      "whole_cells", lengths_b.device(), lengths_b.size(), WholeCells{lengths_b.data<int64_t>(), cells_b.data<int64_t>(), size});
  return cells_b;
}

HOST Tensor text_lengths(const Tensor& targets_bc) {
  const Dims n = DIMS(i64(targets_bc));
  const Tensor length_b({n['b']}, Dtype::i64, targets_bc.device());
  for_each_element("text_lengths", targets_bc.device(), n['b'], TextLengths{targets_bc.data<int64_t>(), length_b.data<int64_t>(), n['c']});
  return length_b;
}

CUDA_ROWS(MeanForward);
CUDA_ROWS(MeanBackward);
CUDA_ROWS(MaxForward);
CUDA_ROWS(MaxBackward);
CUDA_KERNEL(ElementKernel<WholeCells>);
CUDA_KERNEL(ElementKernel<TextLengths>);

}  // namespace ricci
