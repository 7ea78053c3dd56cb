// softmax over the last index:   p_rc = exp(x_rc - max_c x_rc) / sum_c exp(x_rc - max_c x_rc)
//                               dx_rc = p_rc (dp_rc - sum_c dp_rc p_rc)
#include "ops/rows/softmax.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/view.h"
#include "cuda/math.h"
#include "cuda/verbs/rows.h"

namespace ricci {
namespace softmax_kernels {

template <class T> struct Forward {
  using A = Accumulator<T>;
  View<const T, 2> x_rc;
  View<T, 2> p_rc;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const T* const x = &x_rc(r, 0);
    T* const p = &p_rc(r, 0);
    const A most = row.max_of_pieces([&](auto piece) { return piece.load(x); }, x);
    if constexpr (std::is_same_v<T, A>) {
      const A sum = row.sum([&](int64_t c) { return p[c] = math::exp(x[c] - most); });
      row.each_piece([&](auto piece) { piece.store(p, piece.load(p) / sum); }, p);
    } else {  // bf16 would be rounded twice
      const auto power = [&](A x_c) { return math::exp(x_c - most); };
      const A sum = row.sum([&](int64_t c) { return power(A(x[c])); });
      row.each_piece([&](auto piece) { piece.store(p, map(power, piece.load(x)) / sum); }, x, p);
    }
  }
};

template <class T> struct Backward {
  using A = Accumulator<T>;
  View<const T, 2> dp_rc, p_rc;
  View<T, 2> dx_rc;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const A mean = row.sum([&](int64_t c) { return A(dp_rc(r, c)) * A(p_rc(r, c)); });
    const T *const dp = &dp_rc(r, 0), *const p = &p_rc(r, 0);
    T* const dx = &dx_rc(r, 0);
    row.each_piece([&](auto piece) { piece.store(dx, piece.load(p) * (piece.load(dp) - mean)); }, dp, p, dx);
  }
};

}  // namespace softmax_kernels

using namespace softmax_kernels;

HOST Tensor softmax(const Arg& x) {
  DIMS(x);
  if (x.shape().rank() == 0) fail("softmax: expected at least one index, got []");
  Tensor p = like(x);
  const int64_t n = x.shape()[-1], rows = n ? x.size() / n : 0;
  with_dtype(x, [&]<class T>(T) { for_rows("softmax", x.device(), rows, n, Forward<T>{view<const T, 2>(x), view<T, 2>(p)}); });
  return record("softmax", {x}, p, keep(p), [](const Tensor& dp, const Tensor& p) -> Grads {
    Tensor dx = like(p);
    const int64_t n = p.shape()[-1], rows = n ? p.size() / n : 0;
    with_dtype(p, [&]<class T>(T) {
      for_rows("softmax'", p.device(), rows, n, Backward<T>{view<const T, 2>(dp), view<const T, 2>(p), view<T, 2>(dx)});
    });
    return {dx};
  });
}

CUDA_ROWS(Forward);
CUDA_ROWS(Backward);

}  // namespace ricci

// Cost on a GPU:
//   bytes   8 N for N numbers in f32, 12 N backward, half in bf16: a row is read again from the cache
//   floor   65,536 rows of 1024 in f32 on an H200: 0.54 GB at 4.8 TB/s 0.11 ms forward, 0.17 ms backward
