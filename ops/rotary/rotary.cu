// For head n at position t, with h = r / 2 and a_i = (first + t) w_i:
//   n_j = x_j s gain_j,  s = 1 / sqrt(sum_j x_j^2 / k + eps)      with gains, else n_j = x_j
//   y_i = n_i cos a_i - n_{i+h} sin a_i,   y_{i+h} = n_{i+h} cos a_i + n_i sin a_i   for i < h,   y_j = n_j for j >= r
// Backward: u is dy rotated by -a;   with gains g_j = gain_j u_j
//   dx_j = s (g_j - x_j s^2 sum_j (g_j x_j) / k),   dgain_j = sum over positions and heads of u_j x_j s;   else dx = u
//   bytes   for N numbers of q and k in bf16: forward 4 N; backward 4 N, with gains 6 N, 2 N more if it adds to dx; dgain reads dy and x
//   floor   65,536 rows of 12 heads of queries and 12 of keys, of 64, on an H200: 0.40 GB at 4.8 TB/s 0.08 ms; backward with gains 0.13 ms
#include "ops/rotary/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/view.h"
#include "cuda/device/device.h"
#include "cuda/math.h"
#include "cuda/verbs/arithmetic.h"
#include "cuda/verbs/columns.h"
#include "cuda/verbs/short_rows.h"

namespace ricci {
namespace rotary_kernels {

// Row r = p (queries + keys) + n of a program is head n of position p.
struct Layout {
  RotaryHeads heads;
  int64_t context, columns, turned, first;  // c, the columns of x, r, and the position of c = 0
  HD int64_t count() const { return heads.queries + heads.keys; }
  HD int64_t in_x(int64_t r) const { return r / count() * columns + r % count() * heads.width; }
  HD int64_t in_table(int64_t r) const { return position_in_table(r / count()); }
  HD int64_t position_in_table(int64_t p) const { return (first + static_cast<uint32_t>(p) % static_cast<uint32_t>(context)) * turned; }
  HD bool is_query(int64_t r) const { return r % count() < heads.queries; }
};

template <class A> struct Pair { A first, second; };
template <class A> HD Pair<A> turned(A x, A y, A cosine, A sine) { return {x * cosine - y * sine, y * cosine + x * sine}; }

// Calls put(j, y_j), where y are the numbers get(j) rotated by `direction` times the angles of cos_sin.
template <class A, class Row, class Get, class Put>
HD void turn(Row row, const A* cos_sin, int64_t columns, A direction, const Get& get, const Put& put) {
  const int64_t half = columns / 2;
  Row{half}.each([&](int64_t i) {
    const Pair<A> y = turned(get(i), get(i + half), cos_sin[i], direction * cos_sin[half + i]);
    put(i, y.first);
    put(i + half, y.second);
  });
  Row{row.n - columns}.each([&](int64_t i) { put(columns + i, get(columns + i)); });
}

template <class T> struct Forward {
  using A = Accumulator<T>;
  const T *x_bcd, *q_gain_k, *k_gain_k;  // the gains are null without a norm
  const A* table_Cr;
  T* y_rk;
  A *s_r, eps;
  Layout layout;

  template <class Row> HD void operator()(int64_t r, Row row) const {
    const T *const x = x_bcd + layout.in_x(r), *const gain = layout.is_query(r) ? q_gain_k : k_gain_k;
    const A* const cos_sin = table_Cr + layout.in_table(r);
    T* const y = y_rk + r * row.n;
    const auto put = [=](int64_t j, A value) { y[j] = T(value); };
    if (!gain)
      return turn(
          row, cos_sin, layout.turned, A(1), [=](int64_t j) { return A(x[j]); }, put);
    const A s = 1 / math::sqrt(row.sum([=](int64_t j) { return A(x[j]) * A(x[j]); }) / A(row.n) + eps);
    turn(
        row, cos_sin, layout.turned, A(1), [=](int64_t j) { return A(x[j]) * s * A(gain[j]); }, put);
    row.once([&] { s_r[r] = s; });
  }
};

template <class T> struct BackwardInput {
  using A = Accumulator<T>;
  const T *x_bcd, *q_gain_k, *k_gain_k, *dy_rk;  // x_bcd and the gains are null without a norm
  const A *table_Cr, *s_r;
  T* dx_bcd;
  bool add;  // adds to dx instead of writing it
  Layout layout;

  template <class Row> HD void operator()(int64_t r, Row row) const {
    const T *const dy = dy_rk + r * row.n, *const gain = layout.is_query(r) ? q_gain_k : k_gain_k;
    const A* const cos_sin = table_Cr + layout.in_table(r);
    T* const dx = dx_bcd + layout.in_x(r);
    const bool adds = add;
    const auto store = [=](int64_t j, A value) { dx[j] = T(adds ? A(dx[j]) + value : value); };
    const auto get = [=](int64_t j) { return A(dy[j]); };
    if (!gain) return turn(row, cos_sin, layout.turned, A(-1), get, store);
    const T* const x = x_bcd + layout.in_x(r);
    const int64_t columns = layout.turned, half = columns / 2;
    const auto with_x = [=](int64_t j, A u) { return u * A(gain[j]) * A(x[j]); };
    const A of_pairs = Row{half}.sum([=](int64_t i) {
      const Pair<A> u = turned(A(dy[i]), A(dy[i + half]), cos_sin[i], -cos_sin[half + i]);
      return with_x(i, u.first) + with_x(i + half, u.second);
    });
    const A of_others = Row{row.n - columns}.sum([=](int64_t i) { return with_x(columns + i, A(dy[columns + i])); });
    const A s = s_r[r], mean = (of_pairs + of_others) / A(row.n);
    turn(row, cos_sin, columns, A(-1), get, [=](int64_t j, A u) { store(j, s * (A(gain[j]) * u - A(x[j]) * (s * s * mean))); });
  }
};

// Sums over the positions p, and at each position over the heads first_head .. first_head + count - 1. i < r / 2 is the pair of columns i
// and i + r / 2; any other i is column i + r / 2 and was not rotated.
template <class T> struct BackwardGain {
  using A = Accumulator<T>;
  using Value = A;
  static constexpr int kSums = 2;
  const T *x_bcd, *dy_rk;
  const A *table_Cr, *s_r;
  A* dgain_k;
  int64_t first_head, count;
  Layout layout;

  HD void add(int64_t p, int64_t i, A (&sum)[2]) const {
    const int64_t half = layout.turned / 2;
    const bool turns = i < half;
    const A* const cos_sin = table_Cr + layout.position_in_table(p);
    const A cosine = turns ? cos_sin[i] : A(1), sine = turns ? cos_sin[half + i] : A(0);
    for (int64_t n = first_head; n < first_head + count; ++n) {
      const int64_t r = p * layout.count() + n;
      const T *const dy = dy_rk + r * layout.heads.width, *const x = x_bcd + p * layout.columns + n * layout.heads.width;
      const Pair<A> u = turned(turns ? A(dy[i]) : A(0), A(dy[i + half]), cosine, -sine);
      sum[0] += u.first * A(x[i]) * s_r[r];
      sum[1] += u.second * A(x[i + half]) * s_r[r];
    }
  }
  HD void store(int64_t i, const A (&sum)[2]) const {
    if (i < layout.turned / 2) dgain_k[i] = sum[0];
    dgain_k[i + layout.turned / 2] = sum[1];
  }
};

HOST void check_heads(const Shape& x, const RotaryHeads& heads, const Tensor& q_gain_k, const Tensor& k_gain_k) {
  if (heads.queries < 1 || heads.keys < 1 || heads.width < 1)
    fail("rotary: got {} query heads and {} key heads of {} columns, expected 1 or more of each", {heads.queries, heads.keys, heads.width});
  if (heads.queries > x[2] / heads.width - heads.keys)
    fail("rotary: x_bcd{} does not have {} + {} heads of {} columns", {show(x), heads.queries, heads.keys, heads.width});
  if (x[0] * x[1] >> 32) fail("rotary: x_bcd{} has {} positions, expected fewer than 2^32", {show(x), x[0] * x[1]});
  if (bool(q_gain_k) != bool(k_gain_k)) fail("rotary: {} is empty, expected both gains or neither", {q_gain_k ? "k_gain_k" : "q_gain_k"});
  if (q_gain_k && q_gain_k.size() != heads.width)
    fail("rotary: the heads have {} columns and the gains {}, expected the same number", {heads.width, q_gain_k.size()});
}

HOST void check_table(const Tensor& x, const Tensor& table_Cr, int64_t width, int64_t first, bool normalises) {
  if (!table_Cr && !normalises) fail("rotary: expected gains, a table or both, got neither");
  if (!table_Cr) return;
  const int64_t positions = table_Cr.shape()[0], turned = table_Cr.shape()[1], count = x.shape()[1];
  if (table_Cr.dtype() != sums_of(x.dtype()))
    fail("rotary: table_Cr is {}, expected {} for x_bcd in {}",
        {name_of(table_Cr.dtype()), name_of(sums_of(x.dtype())), name_of(x.dtype())});
  if (turned % 2 || turned > width)
    fail("rotary: table_Cr{} rotates {} columns, expected an even number and at most the {} of a head",
        {show(table_Cr.shape()), turned, width});
  if (first < 0 || first > positions - count) fail("rotary: table_Cr has {} positions, expected {} from {} on", {positions, count, first});
  if (const Tape* const tape = Tape::recording(); tape && tape->has(table_Cr)) fail("rotary: table_Cr is recorded, expected a constant");
}

HOST Tensor backward_input(const Tensor& dy, const Tensor& x, const Tensor& q_gain_k, const Tensor& k_gain_k, const Tensor& table_Cr,
    const Tensor& s_r, const Layout& layout) {
  // The columns of the values get their gradient from another op, usually before this one.
  Tensor dx = gradient_dtype(0) == dy.dtype() ? take_gradient(0) : Tensor();
  const bool add = bool(dx);
  if (!add) {
    const Shape shape{dy.shape()[0], layout.context, layout.columns};
    dx = like(dy, shape);
    if (layout.columns > layout.count() * layout.heads.width) fill(dx, 0);
  }
  with_dtype(dy, [&]<class T>(T) {
    using A = Accumulator<T>;
    for_short_rows("rotary'", dy.device(), dy.shape()[0] * layout.context * layout.count(), layout.heads.width,
        BackwardInput<T>{pointer<T>(x), pointer<T>(q_gain_k), pointer<T>(k_gain_k), dy.data<T>(), pointer<A>(table_Cr), pointer<A>(s_r),
            dx.data<T>(), add, layout});
  });
  return dx;
}

HOST Tensor backward_gain(
    const Tensor& dy, const Tensor& x, const Tensor& table_Cr, const Tensor& s_r, const Layout& layout, bool of_queries) {
  const RotaryHeads& heads = layout.heads;
  const int64_t count = of_queries ? heads.queries : heads.keys;
  const Tensor dgain_k = like(s_r, {heads.width});
  with_dtype(dy, [&]<class T>(T) {
    using A = Accumulator<T>;
    for_columns("rotary'", dy.device(), dy.shape()[0] * layout.context, heads.width - layout.turned / 2,
        BackwardGain<T>{x.data<T>(), dy.data<T>(), pointer<A>(table_Cr), s_r.data<A>(), dgain_k.data<A>(), of_queries ? 0 : heads.queries,
            count, layout});
  });
  return dgain_k;
}

}  // namespace rotary_kernels

using namespace rotary_kernels;

HOST double rotary_frequency(int64_t i, int64_t r, const RotaryFrequencies& f) {
  const double w = std::pow(f.theta, -2.0 * static_cast<double>(i) / static_cast<double>(r));
  if (f.scaling == RopeScaling::linear) return w / f.factor;
  if (f.scaling == RopeScaling::none) return w;
  const double turns = static_cast<double>(f.trained_ctx) * w / (2 * std::numbers::pi);  // rotations within the trained context
  const double kept = std::clamp((turns - f.low) / (f.high - f.low), 0.0, 1.0);
  return w * ((1 - kept) / f.factor + kept);
}

HOST Tensor rotary_table(int64_t positions, int64_t r, const RotaryFrequencies& f, Dtype dtype, Device device) {
  if (r < 0 || r % 2) fail("rotary_table: r is {}, expected an even number", {r});
  if (!(f.theta > 0 && std::isfinite(f.theta))) fail("rotary_table: theta is {}, expected a number above 0", {f.theta});
  if (!(f.factor > 0 && std::isfinite(f.factor))) fail("rotary_table: the factor is {}, expected a number above 0", {f.factor});
  if (!(0 < f.low && f.low < f.high && f.trained_ctx > 0))
    fail("rotary_table: low is {}, high is {} and trained_ctx is {}, expected 0 < low < high and trained_ctx above 0",
        {f.low, f.high, f.trained_ctx});
  const Tensor table_Cr({positions, r}, Dtype::f64);
  for (int64_t i = 0; i < r / 2; ++i) {
    const double w = rotary_frequency(i, r, f);
    for (int64_t t = 0; t < positions; ++t) {
      table_Cr.data<double>()[t * r + i] = std::cos(static_cast<double>(t) * w);
      table_Cr.data<double>()[t * r + r / 2 + i] = std::sin(static_cast<double>(t) * w);
    }
  }
  return to(convert(table_Cr, dtype), device);
}

HOST Tensor rotary(const Arg& x_bcd, const RotaryHeads& heads, const Arg& q_gain_k, const Arg& k_gain_k, const Tensor& table_Cr,
    int64_t first, double eps) {
  const Dims n = DIMS(x_bcd, optional(q_gain_k), optional(k_gain_k), optional(any_dtype(table_Cr)));
  check_heads(x_bcd.shape(), heads, q_gain_k, k_gain_k);
  check_table(x_bcd, table_Cr, heads.width, first, bool(q_gain_k));
  const Layout layout{heads, n['c'], n['d'], n['r'], first};
  const int64_t rows = n['b'] * n['c'] * layout.count();
  const Tensor y = like(x_bcd, Shape{n['b'], n['c'], layout.count() * heads.width});
  const Tensor s_r = q_gain_k ? like(x_bcd, {rows}, sums_of(x_bcd.dtype())) : Tensor();
  with_dtype(x_bcd, [&]<class T>(T) {
    using A = Accumulator<T>;
    for_short_rows("rotary", x_bcd.device(), rows, heads.width,
        Forward<T>{x_bcd.data<T>(), pointer<T>(q_gain_k), pointer<T>(k_gain_k), pointer<A>(table_Cr), y.data<T>(), pointer<A>(s_r), A(eps),
            layout});
  });
  return record("rotary", {x_bcd, q_gain_k, k_gain_k}, y,
      keep(q_gain_k ? Tensor(x_bcd) : Tensor(), q_gain_k, k_gain_k, table_Cr, s_r, layout),
      [](const Tensor& dy, const Tensor& x, const Tensor& q_gain_k, const Tensor& k_gain_k, const Tensor& table_Cr, const Tensor& s_r,
          const Layout& layout) -> Grads {
        Grads grads(3);
        for (int i : {1, 2})
          if (q_gain_k && wants_gradient(i)) grads[static_cast<size_t>(i)] = backward_gain(dy, x, table_Cr, s_r, layout, i == 1);
        if (wants_gradient(0)) grads[0] = backward_input(dy, x, q_gain_k, k_gain_k, table_Cr, s_r, layout);
        return grads;
      });
}

CUDA_SHORT_ROWS(Forward);
CUDA_SHORT_ROWS(BackwardInput);
CUDA_COLUMNS(BackwardGain);

}  // namespace ricci
