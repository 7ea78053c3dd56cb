// Shared by the tests of attention: cases, an attention run forward and backward, and the definition in a low precision.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/philox.h"
#include "ops/attention/attention.h"
#include "ops/attention/kernels.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/ops/values.h"

namespace ricci {

inline Tensor draw(const Shape& shape, uint64_t stream) { return drawn(shape, Dtype::f64, Device::cpu, stream); }

// The largest difference of two tensors; infinite for a NaN.
inline double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const Values x = values_of(a), y = values_of(b);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) raise_to(largest, std::abs(x[i] - y[i]));
  return largest;
}

// The layouts of queries, keys and values.
enum class Place : uint8_t {
  thirds,  // they are the thirds of one tensor
  three_tensors,
  keys_are_values,     // queries in one tensor, keys and values the same columns of another
  all_the_same,        // the same columns of one tensor
  queries_are_values,  // the same columns of a tensor, keys in other columns of it
  wider_tensors,       // queries in one, keys and values in another, each with unused columns
  odd_columns,         // like wider_tensors, but on odd columns: not on 16 bytes
};
inline const std::vector<Place>& all_places() {
  static const std::vector<Place> all = {Place::thirds, Place::three_tensors, Place::keys_are_values, Place::all_the_same,
      Place::queries_are_values, Place::wider_tensors, Place::odd_columns};
  return all;
}
inline Visibility tokens(bool causal, int64_t window = 0) { return causal ? Visibility::causal(window) : Visibility::not_causal(window); }

// q, k and v, or their gradients.
using Three = std::array<ColumnSlice, 3>;

struct Case {
  int64_t b, c, heads, width;
  Visibility sees = Visibility::causal();
  double dropout = 0;
  std::vector<int64_t> lengths{};  // one for each of the b sequences; empty: no padding
  Place place = Place::thirds;
  int64_t keys = -1;  // -1: the number of queries
  double scale = 0;
  int64_t kv_heads = 0;  // 0: heads

  int64_t d() const { return heads * width; }
  int64_t kv() const { return (kv_heads ? kv_heads : heads) * width; }  // columns of keys, and of values
  int64_t key_count() const { return keys < 0 ? c : keys; }
  int64_t keys_of(int64_t sequence) const { return lengths.empty() ? key_count() : lengths[static_cast<size_t>(sequence)]; }
  AttentionOptions options(Device device = Device::cpu) const {
    return {heads, scale, dropout, lengths.empty() ? Tensor() : ids_of(lengths, {b}, device), kv_heads};
  }
  // The columns of each tensor, the first with a position for each query, and the tensor and first column of q, k and v.
  struct Columns {
    std::vector<int64_t> tensors;
    std::array<std::pair<size_t, int64_t>, 3> slices;
  };
  Columns columns() const {
    const int64_t q = d(), k = kv();
    switch (place) {
      case Place::thirds: return {{q + 2 * k}, {{{0, 0}, {0, q}, {0, q + k}}}};
      case Place::three_tensors: return {{q, k, k}, {{{0, 0}, {1, 0}, {2, 0}}}};
      case Place::keys_are_values: return {{q, k}, {{{0, 0}, {1, 0}, {1, 0}}}};
      case Place::all_the_same: return {{q}, {{{0, 0}, {0, 0}, {0, 0}}}};
      case Place::queries_are_values: return {{2 * q}, {{{0, q}, {0, 0}, {0, q}}}};
      case Place::wider_tensors: return {{q + 16, 2 * k + 24}, {{{0, 8}, {1, k + 16}, {1, 8}}}};
      case Place::odd_columns: return {{q + 1, 2 * k + 3}, {{{0, 1}, {1, k + 2}, {1, 1}}}};
    }
    return {};
  }
  std::vector<Tensor> inputs() const {
    std::vector<Tensor> all;
    for (int64_t x : columns().tensors) all.push_back(draw({b, all.empty() ? c : key_count(), x}, all.empty() ? 1 : all.size() + 2));
    return all;
  }
  template <class T> Three slices(const std::vector<T>& of) const {
    const auto& [q, k, v] = columns().slices;
    return {ColumnSlice{of[q.first], q.second, d()}, {of[k.first], k.second, kv()}, {of[v.first], v.second, kv()}};
  }
  Tensor dy() const { return draw({b, c, d()}, 2); }
  std::string text() const {
    std::string all = "dropout " + std::to_string(dropout);
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, int64_t>>{{"b", b}, {"c", c}, {"keys", key_count()},
             {"heads", heads}, {"key heads", kv_heads}, {"width", width}, {"cell", sees.cell}, {"least", sees.least}, {"most", sees.most},
             {"place", static_cast<int64_t>(place)}})
      all += std::string(", ") + name + " " + std::to_string(value);
    for (int64_t length : lengths) all += ", length " + std::to_string(length);
    return all;
  }
};

inline std::vector<Tensor> as(const std::vector<Tensor>& tensors, Dtype dtype, Device device) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(to(convert(t, dtype), device));
  return all;
}

struct ForwardAndBackward {
  Tensor y;
  std::vector<Tensor> gradients;  // one for each input
};
// attention of the case on tensors with other values, dtype or device.
inline ForwardAndBackward run(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy) {
  std::vector<Parameter> parameters;
  for (const Tensor& t : inputs) parameters.push_back({t, {}, "input"});
  set_random_state({5, 1});  // every run drops the same weights
  Tape tape;
  const std::vector<Arg> args(parameters.begin(), parameters.end());
  const auto [q, k, v] = of.slices(args);
  const Tensor y = attention(q, k, v, of.sees, of.options(dy.device()));
  tape.backward(y, dy);
  ForwardAndBackward result{y.detached(), {}};
  for (const Parameter& p : parameters) result.gradients.push_back(p.grad);
  return result;
}
inline ForwardAndBackward run(const Case& of, Dtype dtype, Device device) {
  return run(of, as(of.inputs(), dtype, device), to(convert(of.dy(), dtype), device));
}

// With q = k = 0 every visible key weighs the same, and with v_j the j-th unit vector y_tj is the weight of key j.
inline Values uniform_weights(
    int64_t queries, int64_t keys, int64_t width, const Visibility& sees, Dtype dtype, Device device, double dropout = 0) {
  Values units(static_cast<size_t>(keys * width), 0.0);
  for (int64_t j = 0; j < keys; ++j) units[static_cast<size_t>(j * width + j)] = 1;
  const Tensor q = zeros({1, queries, width}, dtype, device), k = zeros({1, keys, width}, dtype, device);
  return values_of(attention({q}, {k}, {tensor_of(units, {1, keys, width}, dtype, device)}, sees, {.heads = 1, .dropout = dropout}));
}

inline bool same_bits(const ForwardAndBackward& a, const ForwardAndBackward& b) {
  bool same = same_bits(a.y, b.y);
  for (size_t i = 0; i < a.gradients.size(); ++i) same = same && same_bits(a.gradients[i], b.gradients[i]);
  return same;
}

// Column x of a view at a position, of a tensor's values.
struct ViewElement {
  ColumnSlice rows;
  Values values;
  explicit ViewElement(const ColumnSlice& view) : rows(view), values(values_of(view.tensor)) {}
  double operator()(int64_t b, int64_t t, int64_t x) const {
    const Shape& shape = rows.tensor.shape();
    return values[static_cast<size_t>((b * shape[1] + t) * shape[2] + rows.offset + x)];
  }
};

// The case with `padding` as the keys and values after the lengths. Not for views that queries share.
inline ForwardAndBackward run_padded(const Case& of, Dtype dtype, Device device, double padding) {
  const std::vector<Tensor> inputs = of.inputs();
  const Three views = of.slices(inputs);
  for (size_t i : {1, 2})
    for (int64_t b = 0; b < of.b; ++b)
      for (int64_t j = of.keys_of(b); j < of.key_count(); ++j) {
        const int64_t x = views[i].tensor.shape()[2];
        std::fill_n(views[i].tensor.data<double>() + (b * of.key_count() + j) * x + views[i].offset, of.d(), padding);
      }
  return run(of, as(inputs, dtype, device), to(convert(of.dy(), dtype), device));
}

// The values of padding reach nothing; a query that sees no key returns zero and passes no gradient, and an unseen key has none. `sees` is
// the test's own definition of what is visible. For thirds and three tensors.
template <class Sees> void check_zeros(const Case& of, Dtype dtype, Device device, const Sees& sees) {
  CAPTURE(of.text());
  const ForwardAndBackward got = run_padded(of, dtype, device, std::numeric_limits<double>::quiet_NaN());
  CHECK(same_bits(got, run_padded(of, dtype, device, 1)));
  const Three views = of.slices(got.gradients);
  const ViewElement y({got.y}), dq(views[0]), dk(views[1]), dv(views[2]);
  const auto visible = [&](int64_t b, int64_t t, int64_t j) { return j < of.keys_of(b) && sees(t, j); };
  bool right = true;  // one check for all: there are many elements
  for (int64_t b = 0; b < of.b; ++b) {
    for (int64_t t = 0; t < of.c; ++t) {
      bool blind = true;
      for (int64_t j = 0; j < of.key_count(); ++j) blind = blind && !visible(b, t, j);
      for (int64_t x = 0; x < of.d(); ++x)
        right = right && (y(b, t, x) == 0) == blind && std::isfinite(dq(b, t, x)) && (!blind || dq(b, t, x) == 0);
    }
    for (int64_t j = 0; j < of.key_count(); ++j) {
      bool unseen = true;
      for (int64_t t = 0; t < of.c; ++t) unseen = unseen && !visible(b, t, j);
      for (int64_t x = 0; x < of.d(); ++x)
        right = right && (dv(b, j, x) == 0) == unseen && std::isfinite(dk(b, j, x)) && (!unseen || dk(b, j, x) == 0);
    }
  }
  CHECK(right);
}

// The oracle: attention by its formulas, with every option of the op. Computed as A, with each result rounded to S. In f64 the op must
// equal it. Rounded to bf16 it shows the errors of that precision.
template <class S, class A> class Oracle {
 public:
  static ForwardAndBackward run(const Case& of, const std::vector<Tensor>& given, const Tensor& dy) {
    set_random_state({5, 1});  // as in run above
    const std::vector<Tensor> inputs = as(given, dtype_of<A>, Device::cpu);
    const auto [q, k, v] = of.slices(inputs);
    const AttentionOptions options = of.options();  // the problem points into it
    attention_kernels::Problem problem = attention_kernels::check("oracle", q, k, v, of.sees, options).problem;
    problem.dropout = attention_kernels::draw_dropout(of.dropout, of.b * of.heads);
    return Oracle(of, problem).all(inputs, as({dy}, dtype_of<A>, Device::cpu)[0]);
  }

 private:
  Oracle(const Case& of, const attention_kernels::Problem& problem) : of_(of), problem_(problem) {}

  static A rounded(A x) { return A(S(x)); }

  // A head's elements at each position.
  struct Vectors {
    A* first;
    int64_t row;
    A* operator[](int64_t t) const { return first + t * row; }
  };
  Vectors vectors(const ColumnSlice& slice, int64_t head, int64_t group = 1) const {
    auto rows = attention_kernels::head_rows<A>(slice);
    rows.group = group;
    return {rows.of_head(problem_, head), rows.row};
  }

  ForwardAndBackward all(const std::vector<Tensor>& inputs, const Tensor& dy) const {
    ForwardAndBackward out{like(dy), {}};
    for (const Tensor& t : inputs) out.gradients.push_back(zeros_like(t));
    const auto [q, k, v] = of_.slices(inputs);
    const auto [dq, dk, dv] = of_.slices(out.gradients);
    for (int64_t head = 0; head < of_.b * of_.heads; ++head) {
      const Vectors y = vectors({out.y}, head), dy_t = vectors({dy}, head);
      const int64_t group = problem_.group;
      const Head h{vectors(q, head), vectors(k, head, group), vectors(v, head, group), vectors(dq, head), vectors(dk, head, group),
          vectors(dv, head, group)};
      for (int64_t t = 0; t < of_.c; ++t) one_query(head, t, h, dy_t[t], y[t]);
    }
    for (const Tensor& t : out.gradients) std::transform(t.data<A>(), t.data<A>() + t.size(), t.data<A>(), rounded);
    return out;
  }

  A dot(const A* a, const A* b) const {
    A sum = 0;
    for (int64_t x = 0; x < of_.width; ++x) sum += a[x] * b[x];
    return sum;
  }
  A factor(int64_t head, int64_t t, int64_t j) const {
    return problem_.dropout.active() ? problem_.dropout.factor<A>(problem_.weight(head, t) + j) : 1;
  }

  struct Head {
    Vectors q, k, v, dq, dk, dv;
  };
  void one_query(int64_t head, int64_t t, const Head& h, const A* dy, A* y) const {
    const A scale = A(problem_.score_scale);
    std::vector<A> p(static_cast<size_t>(of_.key_count()));
    std::vector<int64_t> seen;
    for (int64_t j = 0; j < problem_.keys_of(head); ++j)
      if (of_.sees.visible(t, j)) seen.push_back(j);
    A largest = -A(HUGE_VAL), sum = 0, delta = 0;
    const auto weight = [&](int64_t j) -> A& { return p[static_cast<size_t>(j)]; };
    for (int64_t j : seen) largest = std::max(largest, weight(j) = rounded(dot(h.q[t], h.k[j]) * scale));
    for (int64_t j : seen) sum += weight(j) = std::exp(weight(j) - largest);
    for (int64_t j : seen) weight(j) = rounded(weight(j) / sum);
    for (int64_t x = 0; x < of_.width; ++x) {
      A total = 0;
      for (int64_t j : seen) total += rounded(weight(j) * factor(head, t, j)) * h.v[j][x];
      y[x] = rounded(total);
    }
    for (int64_t j : seen) delta += weight(j) * factor(head, t, j) * dot(dy, h.v[j]);
    for (int64_t j : seen) {
      const A dropped = rounded(weight(j) * factor(head, t, j));
      const A ds = rounded(weight(j) * (rounded(dot(dy, h.v[j]) * factor(head, t, j)) - delta)) * scale;
      for (int64_t x = 0; x < of_.width; ++x) {
        h.dq[t][x] += ds * h.k[j][x];
        h.dk[j][x] += ds * h.q[t][x];
        h.dv[j][x] += dropped * dy[x];
      }
    }
  }

  const Case& of_;
  attention_kernels::Problem problem_;
};

inline ForwardAndBackward exact(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy) {
  return Oracle<double, double>::run(of, inputs, dy);
}
inline ForwardAndBackward exact(const Case& of) { return exact(of, of.inputs(), of.dy()); }

inline void check_equal(const ForwardAndBackward& got, const ForwardAndBackward& expected) {
  CHECK(distance(got.y, expected.y) < 1e-12);
  REQUIRE(got.gradients.size() == expected.gradients.size());
  for (size_t i = 0; i < got.gradients.size(); ++i) CHECK(distance(got.gradients[i], expected.gradients[i]) < 1e-12);
}

// attention in f64 on the device equals the oracle, forward and backward.
inline void check_exact(const Case& of, Device device) {
  CAPTURE(of.text());
  check_equal(run(of, Dtype::f64, device), exact(of));
}

// y, and the columns of each view in the gradients, have at most twice the error of the definition in that precision.
template <class S> void check_errors(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy, const ForwardAndBackward& got) {
  const ForwardAndBackward expected = exact(of, inputs, dy), naive = Oracle<S, float>::run(of, inputs, dy);
  CHECK(got.y.dtype() == dtype_of<S>);
  // cuBLASLt adds the products of f32 in its own order; 2.2 times the error was measured.
  const double most = got.y.device() == Device::cuda && got.y.dtype() == Dtype::f32 ? 3 : 2;
  CHECK(distance(got.y, expected.y) <= most * distance(naive.y, expected.y));
  const Three got_views = of.slices(got.gradients), exact_views = of.slices(expected.gradients), naive_views = of.slices(naive.gradients);
  for (size_t view : {0, 1, 2}) {
    CAPTURE(view);
    const ViewElement a(got_views[view]), b(exact_views[view]), c(naive_views[view]);
    double got_error = 0, naive_error = 0;
    for (int64_t i = 0; i < of.b; ++i)
      for (int64_t t = 0; t < (view == 0 ? of.c : of.key_count()); ++t)
        for (int64_t x = 0; x < (view == 0 ? of.d() : of.kv()); ++x) {
          raise_to(got_error, std::abs(a(i, t, x) - b(i, t, x)));
          raise_to(naive_error, std::abs(c(i, t, x) - b(i, t, x)));
        }
    CHECK(got_error <= most * naive_error);
  }
}

// attention of values of type S on the device is as exact as the definition in that precision.
template <class S> void check_precision(const Case& of, Device device) {
  CAPTURE(of.text());
  const std::vector<Tensor> inputs = as(of.inputs(), dtype_of<S>, device);
  const Tensor dy = to(convert(of.dy(), dtype_of<S>), device);
  check_errors<S>(of, inputs, dy, run(of, inputs, dy));
}

}  // namespace ricci
