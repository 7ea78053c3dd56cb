// Joins the columns of a fine sequence and of an upsampled coarse one. This is one op, so the upsampled sequence needs no tensor.
//   y_bc(0..d) = a_bcd,   y_bc(d+i) = z_bj(i r + q) + bias_i if c - shift = j r + q is in 0 .. m r - 1, else 0
//   da_bci = dy_bci,   dz_bj(i r + q) = dy_b(j r + q + shift)(d+i), 0 beyond the sequence,   dbias_i = sum_bjq dz_bj(i r + q)
//   bytes   16 N for N numbers of a in f32 (4 each of a and z, 8 of y), 16 N backward, half in bf16
#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/verbs/arithmetic.h"
#include "cuda/verbs/pieces.h"
#include "cuda/verbs/rows.h"
#include "ops/scales/cells.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {
namespace join_upsampled_kernels {

struct Layout {
  int64_t context, cells, ratio, shift;
};

template <class T> struct Forward {
  using A = Accumulator<T>;
  static constexpr int kNeighbours = elements_of_piece<T>();
  const T *a_bcd, *z_bmx, *bias_d;
  T* y_bce;
  Layout layout;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t d = row.n, ratio = layout.ratio, from = r % layout.context - layout.shift;
    const bool covered = from >= 0 && from < layout.cells * ratio;
    const T* const z = z_bmx + (covered ? (r / layout.context * layout.cells + from / ratio) * d * ratio + from % ratio : 0);
    const T* const a = a_bcd + r * d;
    T *const y_of_a = y_bce + 2 * r * d, *const y_of_z = y_of_a + d;
    const auto upsampled = [&](int64_t i) { return A(z[i * ratio]); };
    row.each_piece(
        [&](auto piece) {
          piece.copy(y_of_a, a);
          piece.store(y_of_z, covered ? map(upsampled, piece.index()) + piece.load(bias_d) : piece.all(A(0)));
        },
        a, bias_d, y_of_a);
  }
};

// One row per cell; the elements of the row are the columns of a.
template <class T> struct CellGradient {
  const T* dy_bce;
  T* dz_bmx;
  Layout layout;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t d = row.n, ratio = layout.ratio, b = r / layout.cells, first = r % layout.cells * ratio + layout.shift;
    const T* const dy = dy_bce + (2 * (b * layout.context + first) + 1) * d;  // its second half at position `first`
    interleave(row, dy, 2 * d, dz_bmx + r * d * ratio, ratio,
        [first, context = layout.context](int64_t q) { return first + q >= 0 && first + q < context; });
  }
};

HOST Grads backward(const Tensor& dy_bce, const Layout& layout) {
  const int64_t b = dy_bce.shape()[0], d = dy_bce.shape()[2] / 2;
  const Tensor dz_bmx = wants_gradient(1) || wants_gradient(2) ? like(dy_bce, Shape{b, layout.cells, d * layout.ratio}) : Tensor();
  if (dz_bmx) for_rows_of<CellGradient>("join_upsampled'", b * layout.cells, d, dy_bce, dz_bmx, layout);
  return {wants_gradient(0) ? slice(dy_bce, 2, 0, d) : Tensor(), dz_bmx,
      wants_gradient(2) ? sum_to(dz_bmx.reshaped({b * layout.cells, d, layout.ratio}), {d, 1}, gradient_dtype(2)).reshaped({d}) : Tensor()};
}

}  // namespace join_upsampled_kernels

using namespace join_upsampled_kernels;

HOST Tensor join_upsampled(const Arg& a_bcd, const Arg& z_bmx, const Arg& bias_d, int64_t shift) {
  const Dims n = DIMS(a_bcd, z_bmx, bias_d);
  if (n['d'] == 0 || n['x'] == 0 || n['x'] % n['d'])
    fail("join_upsampled: the {} columns of z_bmx{} are not a multiple of the {} of a_bcd{}",
        {n['x'], show(z_bmx.shape()), n['d'], show(a_bcd.shape())});
  const int64_t ratio = n['x'] / n['d'];
  const Layout layout{n['c'], n['m'], ratio, between(-n['m'] * ratio, shift, n['c'])};  // a larger shift also uses no cell
  const Tensor y_bce = like(a_bcd, Shape{n['b'], n['c'], 2 * n['d']});
  for_rows_of<Forward>("join_upsampled", n['b'] * n['c'], n['d'], a_bcd, z_bmx, bias_d, y_bce, layout);
  return record("join_upsampled", {a_bcd, z_bmx, bias_d}, y_bce, keep(layout),
      [](const Tensor& dy_bce, const Layout& layout) -> Grads { return backward(dy_bce, layout); });
}

CUDA_ROWS(Forward);
CUDA_ROWS(CellGradient);

}  // namespace ricci
