#include "ops/metric/metric.h"

#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Case {
  int64_t b, c, heads, width;
  Triangle triangle;
  Tensor p(Dtype dtype, Device device) const { return drawn({b, c, heads * width}, dtype, device, 1); }
  Tensor m(Dtype dtype, Device device) const { return drawn({heads, packed_size(width)}, dtype, device, 2); }
};

const std::vector<Case> kCases = {{1, 1, 1, 1, Triangle::upper}, {2, 5, 2, 3, Triangle::upper}, {1, 19, 3, 5, Triangle::upper},
    {2, 17, 1, 33, Triangle::upper}, {1, 1, 2, 1, Triangle::lower}, {2, 5, 2, 4, Triangle::lower}, {1, 18, 2, 9, Triangle::lower}};

// The full matrices, spelled out.
Values whole(const Case& of, const Values& packed) {
  const auto k = static_cast<size_t>(of.width), heads = static_cast<size_t>(of.heads);
  const bool upper = of.triangle == Triangle::upper;
  Values l(heads * k * k), m(l.size());
  size_t next = 0;
  for (size_t n = 0; n < heads; ++n)
    for (size_t i = 0; i < k; ++i)
      for (size_t j = upper ? i : 0; j < (upper ? k : i + 1); ++j) l[(n * k + i) * k + j] = packed[next++];
  for (size_t e = 0; e < m.size(); ++e) {
    const size_t first = e / k / k * k, i = e / k % k, j = e % k;  // first: row 0 of the head
    if (upper) m[e] = l[(first + std::min(i, j)) * k + std::max(i, j)];
    for (size_t x = 0; x < k && !upper; ++x) m[e] += l[(first + i) * k + x] * l[(first + j) * k + x];
  }
  return m;
}

// p M of every head, and p M p^T, with the sum of the absolute terms of each.
struct Expected {
  Values q, q_size, r, r_size;
  Expected(const Case& of, const Values& p, const Values& m) : q(p.size()), q_size(p.size()) {
    const auto k = static_cast<size_t>(of.width), n = static_cast<size_t>(of.heads), c = static_cast<size_t>(of.c),
               b = static_cast<size_t>(of.b);
    r.resize(b * n * c * c), r_size.resize(r.size());
    for (size_t i = 0; i < p.size(); ++i)
      for (size_t x = 0; x < k; ++x) {
        const double term = p[i / k * k + x] * m[(i / k % n * k + x) * k + i % k];
        q[i] += term, q_size[i] += std::abs(term);
      }
    for (size_t at = 0; at < r.size(); ++at) {
      const size_t i = at / c % c, j = at % c, head = at / c / c % n, first = at / c / c / n * c;
      for (size_t x = 0; x < k; ++x) {
        const size_t from = ((first + i) * n + head) * k + x, other = ((first + j) * n + head) * k + x;
        r[at] += q[from] * p[other], r_size[at] += q_size[from] * std::abs(p[other]);
      }
    }
  }
};

}  // namespace

TEST_CASE("metric: p M and p M p^T are those of the whole matrices, on every device and in every dtype") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const Case& of : kCases) {
      const Tensor p = of.p(dtype, device), m = of.m(dtype, device);
      Values matrices = whole(of, values_of(m));
      const double rounded = of.triangle == Triangle::lower ? 2 : 1;  // a product L L^T is rounded before it is used
      CHECK(error_of(whole_metric(m, of.triangle), matrices) <= static_cast<double>(of.width + 1) * sum_unit(dtype) + unit(dtype));
      matrices = values_of(tensor_of(matrices, {static_cast<int64_t>(matrices.size())}, dtype, Device::cpu));
      const Expected expected(of, values_of(p), matrices);
      const double bound = static_cast<double>(of.width) * sum_unit(dtype) * 4 + rounded * unit(dtype);
      CHECK(error_of(times_metric(p, m, of.triangle), expected.q, expected.q_size) <= bound);
      CHECK(error_of(metric_scores(p, m, of.triangle), expected.r, expected.r_size) <= bound);
    }
  });
}

TEST_CASE("metric: if one of projections and metric is a constant, the gradient of the other has the same bits") {
  on_every_device([](Device device) {
    for (const Triangle triangle : {Triangle::upper, Triangle::lower})
      for (auto f : {times_metric, metric_scores}) {
        const Case of{2, 5, 2, 3, triangle};
        const Tensor p = of.p(Dtype::f64, device), m = of.m(Dtype::f64, device);
        const Tensor dy = drawn(f(p, m, triangle).shape(), Dtype::f64, device, 3);
        const auto both = gradients_of([&](const std::vector<Tensor>& in) { return f(in[0], in[1], triangle); }, {p, m}, dy);
        const auto of_p = gradients_of([&](const std::vector<Tensor>& in) { return f(in[0], m, triangle); }, {p}, dy);
        const auto of_m = gradients_of([&](const std::vector<Tensor>& in) { return f(p, in[0], triangle); }, {m}, dy);
        CHECK(same_bits(of_p[0], both[0]));
        CHECK(same_bits(of_m[0], both[1]));
      }
  });
}

TEST_CASE("metric: the bits of the scores and of the gradients do not depend on the number of threads") {
  const Case of{1, 70, 2, 20, Triangle::upper};
  const Tensor p = of.p(Dtype::f32, Device::cpu), m = of.m(Dtype::f32, Device::cpu);
  for (auto f : {times_metric, metric_scores})
    check_threads([&] {
      const Tensor y = f(p, m, of.triangle);
      const auto map = [&](const std::vector<Tensor>& in) { return f(in[0], in[1], of.triangle); };
      std::vector<Tensor> all = gradients_of(map, {p, m}, drawn(y.shape(), Dtype::f32, Device::cpu, 3));
      all.push_back(y);
      return all;
    });
}

TEST_CASE("metric: messages") {
  for (auto [name, f] : {std::pair<std::string, decltype(&times_metric)>{"times_metric", times_metric}, {"metric_scores", metric_scores}}) {
    const auto said = [f = f](Shape p, Shape m) { return message_of([&] { f(Tensor(p), Tensor(m), Triangle::upper); }); };
    CHECK(said({2, 3, 12}, {4, 10}) ==
          name + ": m_nl[4 10] is a metric of 4 heads of width 4, expected heads that fill all columns of p_bcd[2 3 12] (12)");
    CHECK(said({2, 3, 12}, {3, 11}) == name + ": there are 11 entries per head in m_nl[3 11], expected a triangular number");
  }
  const auto whole_of = [](Shape m) { return message_of([&] { whole_metric(Tensor(m), Triangle::upper); }); };
  CHECK(whole_of({1, 4}) == "whole_metric: there are 4 entries per head in m_nl[1 4], expected a triangular number");
  CHECK(whole_of({3}) == "whole_metric: m_nl[3] does not have the indices 'nl'");
  CHECK(message_of([] {
    metric_kernels::upper_triangle(Tensor({1, 3}, Dtype::bf16), Triangle::lower, 2, Dtype::bf16);
  }) == "pack_metric: the matrices are bf16, expected f32 or f64");
}
