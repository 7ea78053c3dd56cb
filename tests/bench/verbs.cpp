// The cost of the verbs on the CPU: for_each_element and for_rows against the same formula in a plain loop that the
// compiler vectorises, one thread, data in the caches, interleaved. Prints nanoseconds per element and the ratio.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/cpu/available.h"
#include "core/cpu/parallel.h"
#include "core/view.h"
#include "cuda/math.h"
#include "cuda/verbs/elements.h"
#include "cuda/verbs/rows.h"

using namespace ricci;

namespace {

struct Silu {
  const float* x;
  float* y;
  HD void operator()(int64_t i) const { y[i] = x[i] / (1 + math::exp(-x[i])); }
};

struct Softmax {
  View<const float, 2> x_rc;
  View<float, 2> y_rc;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const float most = row.max([&](int64_t c) { return x_rc(r, c); });
    const float sum = row.sum([&](int64_t c) { return y_rc(r, c) = math::exp(x_rc(r, c) - most); });
    const float inverse = 1 / sum;
    row.each([&](int64_t c) { y_rc(r, c) *= inverse; });
  }
};

// The references: no verb, no view, no program.
struct PlainSilu {
  const float* x;
  float* y;
  HD void operator()(int64_t begin, int64_t end) const {
    const float* from = x;
    float* to = y;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] = from[i] / (1 + math::exp(-from[i]));
  }
};

struct PlainSoftmax {
  const float* x;
  float* y;
  int64_t n;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      const float* from = x + r * n;
      float* to = y + r * n;
      float most = from[0], sum = 0;
#pragma omp simd reduction(max : most)
      for (int64_t c = 0; c < n; ++c) most = from[c] > most ? from[c] : most;
#pragma omp simd reduction(+ : sum)
      for (int64_t c = 0; c < n; ++c) sum += to[c] = math::exp(from[c] - most);
      const float inverse = 1 / sum;
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) to[c] *= inverse;
    }
  }
};

template <class F> double seconds(const F& f) {
  const double before = seconds_now();
  for (int i = 0; i < 20; ++i) f();
  return (seconds_now() - before) / 20;
}

template <class Verb, class Plain> void compare(const char* name, int64_t elements, const Verb& verb, const Plain& plain) {
  std::vector<double> of_verb, of_plain, ratios;
  for (int round = 0; round < 41; ++round) {
    of_verb.push_back(seconds(verb)), of_plain.push_back(seconds(plain));
    ratios.push_back(of_plain.back() / of_verb.back());
  }
  auto median = [](std::vector<double>& v) { return std::sort(v.begin(), v.end()), v[v.size() / 2]; };
  const double per = 1e9 / static_cast<double>(elements);
  std::printf("%-18s verb %.3f ns, plain loop %.3f ns per element: %.2f of the plain loop's speed\n", name, median(of_verb) * per,
      median(of_plain) * per, median(ratios));
}

}  // namespace

int main() {
  set_thread_count(1);
  constexpr int64_t kRows = 64, kColumns = 1024, kSize = kRows * kColumns;
  std::vector<float> x(kSize), y(kSize);
  for (int64_t i = 0; i < kSize; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i % 97) / 20 - 2;
  compare(
      "element (silu)", kSize,
      [&] {
        for_each_element("silu", Device::cpu, kSize, Silu{x.data(), y.data()});
      },
      [&] {
        run_vectorized(PlainSilu{x.data(), y.data()}, 0, kSize);
      });
  compare(
      "row (softmax)", kSize,
      [&] {
        for_rows("softmax", Device::cpu, kRows, kColumns, Softmax{{x.data(), {kRows, kColumns}}, {y.data(), {kRows, kColumns}}});
      },
      [&] {
        run_vectorized(PlainSoftmax{x.data(), y.data(), kColumns}, 0, kRows);
      });
}
