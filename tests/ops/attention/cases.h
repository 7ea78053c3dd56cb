// The tests of attention share these: cases, an attention run forward and backward, and the definition in a low precision.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/random.h"
#include "ops/attention/attention.h"
#include "ops/attention/kernels.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/ops/values.h"

namespace ricci {

inline Tensor draw(const Shape& shape, uint64_t stream) { return drawn(shape, Dtype::f64, Device::cpu, stream); }

// The largest difference of two tensors; a NaN counts as infinite.
inline double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const Values x = values_of(a), y = values_of(b);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) raise_to(largest, std::abs(x[i] - y[i]));
  return largest;
}

// The places of queries, keys and values.
enum class Place : uint8_t {
  thirds,  // they are the thirds of one tensor
  three_tensors,
  keys_are_values,     // queries in a tensor of their own, keys and values the same columns of another
  all_the_same,        // the same columns of one tensor
  queries_are_values,  // the same columns of a tensor, keys in others of it
  wider_tensors,       // queries in one, keys and values in another, each with columns that nobody uses
  odd_columns,         // the same, but on odd columns: not on 16 bytes
};
inline const std::vector<Place>& all_places() {
  static const std::vector<Place> all = {Place::thirds, Place::three_tensors, Place::keys_are_values, Place::all_the_same,
      Place::queries_are_values, Place::wider_tensors, Place::odd_columns};
  return all;
}
inline bool in_one_tensor(Place place) {
  return place == Place::thirds || place == Place::all_the_same || place == Place::queries_are_values;
}

inline Visibility tokens(bool causal, int64_t window = 0) { return causal ? Visibility::causal(window) : Visibility::not_causal(window); }

// q, k and v, or their gradients.
using Three = std::array<Rows, 3>;

struct Case {
  int64_t b, c, heads, width;
  Visibility sees = Visibility::causal();
  double dropout = 0;
  std::vector<int64_t> lengths{};  // one for each of the b sequences; empty: no padding
  Place place = Place::thirds;
  int64_t keys = -1;  // -1: as many as queries
  double scale = 0;
  int64_t kv_heads = 0;  // 0: heads

  int64_t d() const { return heads * width; }
  int64_t kv() const { return (kv_heads ? kv_heads : heads) * width; }  // columns of keys, and of values
  int64_t key_count() const { return keys < 0 ? c : keys; }
  int64_t keys_of(int64_t sequence) const { return lengths.empty() ? key_count() : lengths[static_cast<size_t>(sequence)]; }
  AttentionOptions options(Device device = Device::cpu) const {
    return {heads, scale, dropout, lengths.empty() ? Tensor() : ids_of(lengths, {b}, device), kv_heads};
  }
  // The tensors that q, k and v stand in.
  std::vector<Tensor> inputs() const {
    const auto tensor = [&](int64_t positions, int64_t columns, uint64_t stream) { return draw({b, positions, columns}, stream); };
    switch (place) {
      case Place::thirds: return {tensor(c, d() + 2 * kv(), 1)};
      case Place::three_tensors: return {tensor(c, d(), 1), tensor(key_count(), kv(), 3), tensor(key_count(), kv(), 4)};
      case Place::keys_are_values: return {tensor(c, d(), 1), tensor(key_count(), kv(), 3)};
      case Place::all_the_same: return {tensor(c, d(), 1)};
      case Place::queries_are_values: return {tensor(c, 2 * d(), 1)};
      case Place::wider_tensors: return {tensor(c, d() + 16, 1), tensor(key_count(), 2 * kv() + 24, 3)};
      case Place::odd_columns: return {tensor(c, d() + 1, 1), tensor(key_count(), 2 * kv() + 3, 3)};
    }
    return {};
  }
  template <class T> Three views(const std::vector<T>& of) const {
    const auto view = [&](size_t tensor, int64_t offset) { return Rows{of[tensor], offset, d()}; };
    const auto kv_view = [&](size_t tensor, int64_t offset) { return Rows{of[tensor], offset, kv()}; };
    switch (place) {
      case Place::thirds: return {view(0, 0), kv_view(0, d()), kv_view(0, d() + kv())};
      case Place::three_tensors: return {view(0, 0), kv_view(1, 0), kv_view(2, 0)};
      case Place::keys_are_values: return {view(0, 0), kv_view(1, 0), kv_view(1, 0)};
      case Place::all_the_same: return {view(0, 0), view(0, 0), view(0, 0)};
      case Place::queries_are_values: return {view(0, d()), view(0, 0), view(0, d())};
      case Place::wider_tensors: return {view(0, 8), kv_view(1, kv() + 16), kv_view(1, 8)};
      case Place::odd_columns: return {view(0, 1), kv_view(1, kv() + 2), kv_view(1, 1)};
    }
    return {view(0, 0), view(0, 0), view(0, 0)};
  }
  Tensor dy() const { return draw({b, c, d()}, 2); }
  std::string text() const {
    std::string all = "b " + std::to_string(b) + ", c " + std::to_string(c) + ", keys " + std::to_string(key_count()) + ", heads " +
                      std::to_string(heads) + ", width " + std::to_string(width) + ", scale " + std::to_string(sees.scale) + ", least " +
                      std::to_string(sees.least) + ", most " + std::to_string(sees.most) + ", dropout " + std::to_string(dropout) +
                      ", place " + std::to_string(static_cast<int>(place)) + ", key heads " + std::to_string(kv_heads);
    for (int64_t length : lengths) all += ", length " + std::to_string(length);
    return all;
  }
};

inline std::vector<Tensor> as(const std::vector<Tensor>& tensors, Dtype dtype, Device device) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(to(convert(t, dtype), device));
  return all;
}

using Attention = Tensor (*)(const Rows&, const Rows&, const Rows&, const Visibility&, const AttentionOptions&);

struct ForwardAndBackward {
  Tensor y;
  std::vector<Tensor> gradients;  // one for each input
};
// f of the case on tensors that may differ from its own in values, dtype and device.
inline ForwardAndBackward run(Attention f, const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy) {
  std::vector<Parameter> parameters;
  for (const Tensor& t : inputs) parameters.push_back({t, {}, "input"});
  set_random_state({5, 1});  // the same weights are dropped in every run
  Tape tape;
  const std::vector<Arg> args(parameters.begin(), parameters.end());
  const auto [q, k, v] = of.views(args);
  const Tensor y = f(q, k, v, of.sees, of.options(dy.device()));
  tape.backward(y, dy);
  ForwardAndBackward result{y.detached(), {}};
  for (const Parameter& p : parameters) result.gradients.push_back(p.grad);
  return result;
}
inline ForwardAndBackward run(Attention f, const Case& of, Dtype dtype, Device device) {
  return run(f, of, as(of.inputs(), dtype, device), to(convert(of.dy(), dtype), device));
}

inline bool same_bits(const ForwardAndBackward& a, const ForwardAndBackward& b) {
  bool same = same_bits(a.y, b.y);
  for (size_t i = 0; i < a.gradients.size(); ++i) same = same && same_bits(a.gradients[i], b.gradients[i]);
  return same;
}

// Column x of a view at a position, of a tensor's values.
struct ViewElement {
  Rows rows;
  Values values;
  explicit ViewElement(const Rows& view) : rows(view), values(values_of(view.tensor)) {}
  double operator()(int64_t b, int64_t t, int64_t x) const {
    const Shape& shape = rows.tensor.shape();
    return values[static_cast<size_t>((b * shape[1] + t) * shape[2] + rows.offset + x)];
  }
};

// The case with keys and values behind the lengths that are `padding`. Not for views that queries share.
inline ForwardAndBackward run_padded(const Case& of, Dtype dtype, Device device, double padding) {
  const std::vector<Tensor> inputs = of.inputs();
  const Three views = of.views(inputs);
  for (size_t i : {1, 2})
    for (int64_t b = 0; b < of.b; ++b)
      for (int64_t j = of.keys_of(b); j < of.key_count(); ++j) {
        const int64_t x = views[i].tensor.shape()[2];
        std::fill_n(views[i].tensor.data<double>() + (b * of.key_count() + j) * x + views[i].offset, of.d(), padding);
      }
  return run(attention, of, as(inputs, dtype, device), to(convert(of.dy(), dtype), device));
}

// The values of padding reach nothing; a query that sees no key gives zero and passes no gradient, and a key that nobody sees
// has none. `sees` says what is visible, in the test's own words. It takes thirds and three tensors.
template <class Sees> void check_zeros(const Case& of, Dtype dtype, Device device, const Sees& sees) {
  CAPTURE(of.text());
  const ForwardAndBackward got = run_padded(of, dtype, device, std::numeric_limits<double>::quiet_NaN());
  CHECK(same_bits(got, run_padded(of, dtype, device, 1)));
  const Three views = of.views(got.gradients);
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

// attention in f64 on the device is the definition, forward and backward.
inline void check_definition(const Case& of, Device device) {
  CAPTURE(of.text());
  const ForwardAndBackward expected = run(naive_attention, of, Dtype::f64, Device::cpu), got = run(attention, of, Dtype::f64, device);
  CHECK(distance(got.y, expected.y) < 1e-12);
  REQUIRE(got.gradients.size() == expected.gradients.size());
  for (size_t i = 0; i < got.gradients.size(); ++i) CHECK(distance(got.gradients[i], expected.gradients[i]) < 1e-12);
}

// The definition of attention once more, every value stored as S and computed in f32: what a low precision may cost.
template <class S> class LowPrecision {
 public:
  static ForwardAndBackward run(const Case& of, const std::vector<Tensor>& inputs_f32, const Tensor& dy_f32) {
    set_random_state({5, 1});  // as in run of cases.h
    const auto [q, k, v] = of.views(inputs_f32);
    const AttentionOptions options = of.options();  // which the problem has a pointer into
    attention_kernels::Problem problem = attention_kernels::check("low precision", q, k, v, of.sees, options).problem;
    problem.dropout = attention_kernels::draw_dropout(of.dropout, of.b * of.heads);
    return LowPrecision(of, problem).all(inputs_f32, dy_f32);
  }

 private:
  LowPrecision(const Case& of, const attention_kernels::Problem& problem) : of_(of), problem_(problem) {}

  static float rounded(float x) { return static_cast<float>(S(x)); }

  // A head's vectors by position.
  struct Vectors {
    float* first;
    int64_t row;
    float* operator[](int64_t t) const { return first + t * row; }
  };
  Vectors vectors(const Rows& rows, int64_t head, int64_t group = 1) const {
    auto view = attention_kernels::head_rows<float>(rows);
    view.group = group;
    return {view.of_head(problem_, head), view.row};
  }

  ForwardAndBackward all(const std::vector<Tensor>& inputs, const Tensor& dy) const {
    ForwardAndBackward out{like(dy), {}};
    for (const Tensor& t : inputs) out.gradients.push_back(zeros_like(t));
    const auto [q, k, v] = of_.views(inputs);
    const auto [dq, dk, dv] = of_.views(out.gradients);
    for (int64_t head = 0; head < of_.b * of_.heads; ++head) {
      const Vectors y = vectors({out.y}, head), dy_t = vectors({dy}, head);
      const int64_t group = problem_.group;
      const Head h{vectors(q, head), vectors(k, head, group), vectors(v, head, group), vectors(dq, head), vectors(dk, head, group),
          vectors(dv, head, group)};
      for (int64_t t = 0; t < of_.c; ++t) one_query(head, t, h, dy_t[t], y[t]);
    }
    for (const Tensor& t : out.gradients)
      for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] = rounded(t.data<float>()[i]);
    return out;
  }

  float dot(const float* a, const float* b) const {
    float sum = 0;
    for (int64_t x = 0; x < of_.width; ++x) sum += a[x] * b[x];
    return sum;
  }
  float factor(int64_t head, int64_t t, int64_t j) const {
    return problem_.dropout.active() ? problem_.dropout.factor<float>(problem_.weight(head, t) + j) : 1;
  }

  struct Head {
    Vectors q, k, v, dq, dk, dv;
  };
  void one_query(int64_t head, int64_t t, const Head& h, const float* dy, float* y) const {
    const float scale = static_cast<float>(problem_.scale);
    std::vector<float> p(static_cast<size_t>(of_.key_count()));
    std::vector<int64_t> seen;
    for (int64_t j = 0; j < problem_.keys_of(head); ++j)
      if (of_.sees.visible(t, j)) seen.push_back(j);
    float largest = -HUGE_VALF, sum = 0, mean = 0;
    const auto weight = [&](int64_t j) -> float& { return p[static_cast<size_t>(j)]; };
    for (int64_t j : seen) largest = std::max(largest, weight(j) = rounded(dot(h.q[t], h.k[j]) * scale));
    for (int64_t j : seen) sum += weight(j) = std::exp(weight(j) - largest);
    for (int64_t j : seen) weight(j) = rounded(weight(j) / sum);
    for (int64_t x = 0; x < of_.width; ++x) {
      float total = 0;
      for (int64_t j : seen) total += rounded(weight(j) * factor(head, t, j)) * h.v[j][x];
      y[x] = rounded(total);
    }
    for (int64_t j : seen) mean += weight(j) * factor(head, t, j) * dot(dy, h.v[j]);
    for (int64_t j : seen) {
      const float dropped = rounded(weight(j) * factor(head, t, j));
      const float ds = rounded(weight(j) * (rounded(dot(dy, h.v[j]) * factor(head, t, j)) - mean)) * scale;
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

// y, and the columns of each view in the gradients, have at most twice the error that the definition has in that precision.
template <class S> void check_errors(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy, const ForwardAndBackward& got) {
  const std::vector<Tensor> exact_inputs = as(inputs, Dtype::f64, Device::cpu);
  const Tensor dy64 = to(convert(dy, Dtype::f64), Device::cpu);
  const ForwardAndBackward exact = run(naive_attention, of, exact_inputs, dy64);
  const ForwardAndBackward naive = LowPrecision<S>::run(of, as(exact_inputs, Dtype::f32, Device::cpu), convert(dy64, Dtype::f32));
  CHECK(got.y.dtype() == dtype_of<S>);
  // cuBLASLt adds the products of f32 in an order of its own; 2.2 times the error was measured.
  const double most = got.y.device() == Device::cuda && got.y.dtype() == Dtype::f32 ? 3 : 2;
  CHECK(distance(got.y, exact.y) <= most * distance(naive.y, exact.y));
  const Three got_views = of.views(got.gradients), exact_views = of.views(exact.gradients), naive_views = of.views(naive.gradients);
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
  check_errors<S>(of, inputs, dy, run(attention, of, inputs, dy));
}

// The same in bf16 on a GPU, computed by these kernels.
inline void check_path(const Case& of, attention_kernels::GpuPath path, Device device) {
  CAPTURE(of.text());
  const std::vector<Tensor> inputs = as(of.inputs(), Dtype::bf16, device);
  const Tensor dy = to(convert(of.dy(), Dtype::bf16), device);
  const auto [q, k, v] = of.views(inputs);
  const AttentionOptions options = of.options(device);  // the problem points into them
  auto problem = attention_kernels::check("attention", q, k, v, of.sees, options).problem;
  problem.dropout = attention_kernels::draw_dropout(of.dropout, of.b * of.heads);
  CHECK(attention_kernels::gpu_path(problem, {q, k, v, {dy}}) == path);
  check_errors<bf16>(of, inputs, dy, run(attention, of, inputs, dy));
}

// The results and the gradients of each case in bf16 have the same bits in every order of the emulator's threads.
inline void check_thread_orders(const std::vector<Case>& cases) {
  using Order = emu::Options::Order;
  for (const Case& of : cases) {
    CAPTURE(of.text());
    const ForwardAndBackward expected = run(attention, of, Dtype::bf16, Device::cuda_emulated);
    for (Order order : {Order::reverse, Order::random}) {
      WithOptions options;
      options->order = order;
      CHECK(same_bits(run(attention, of, Dtype::bf16, Device::cuda_emulated), expected));
    }
  }
}

}  // namespace ricci
