// y_v (+)= factor * sum over k of x_{rows(v, k)}: each row of y is the sum of some rows of x, in the order of k. Rows lists them, as
// count(v) and row(v, k). A row of y does not change if its list is empty. The rounding errors of a long sum grow, so each partial sum has
// at most kLongest terms, and the partial sums are added in f64.
#pragma once
#include "cuda/verbs/pieces.h"
#include "cuda/verbs/rows.h"
#include "ops/shapes/strided.h"

namespace ricci {

// Row v of y is the sum of the rows v * per_output + k * per_term of x, k < terms.
struct RegularRows {
  static constexpr int64_t kLongest = 512;
  int64_t terms, per_output, per_term;
  HD int64_t count(int64_t) const { return terms; }
  HD int64_t row(int64_t v, int64_t k) const { return v * per_output + k * per_term; }
};

template <class T, class Rows, class To = T> struct SumRows {
  using A = Accumulator<T>;
  const T* x;
  To* y;
  A factor;
  Rows rows;
  bool add = false;  // adds to y instead of writing it

  static constexpr int kNeighbours = elements_of_piece<T, To>();

  // On the GPU a block computes one row of y. It loads 16 bytes of four rows together: a frequent id has thousands of rows.
  template <class Row> __device__ void operator()(int64_t v, Row row) const {
    const int64_t count = rows.count(v), n = row.n;
    if (count == 0) return;  // for all threads of the block
    T const* const from = x;
    To* const y_d = y + v * n;
    row.each_piece(
        [&](auto piece) {
          auto total = piece.all(0.0);
          for (int64_t first = 0; first < count; first += Rows::kLongest) {
            const int64_t end = min(first + Rows::kLongest, count);
            auto part = piece.all(A(0));
            UNROLL(4)
            for (int64_t k = first; k < end; ++k) part = part + piece.load(from + rows.row(v, k) * n);
            total = map([](double all, A some) { return all + double(some); }, total, part);
          }
          const auto sum = factor * map([](double all) { return A(all); }, total);
          piece.store(y_d, add ? sum + piece.load(y_d) : sum);
        },
        from, y_d);
  }
};

template <class T, class Rows, class To> struct SumRowsLoop {
  using A = Accumulator<T>;
  static constexpr int64_t kWidth = 1024;  // columns summed at a time: the sums stay in the cache
  SumRows<T, Rows, To> sum;
  int64_t n;

  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t v = begin; v < end; ++v) {
      if (sum.rows.count(v) == 0) continue;
      for (int64_t d = 0; d < n; d += kWidth) columns(v, d, n - d < kWidth ? n - d : kWidth);
    }
  }

 private:
  HD void columns(int64_t v, int64_t first, int64_t width) const {
    A totals[kWidth];
    A* const total = totals;
    const int64_t count = sum.rows.count(v);
    if (count <= Rows::kLongest) partial_sum(v, 0, count, first, width, total);
    else long_sum(v, count, first, width, total);
    To* target = sum.y + v * n + first;
    const A factor = sum.factor;
    if (sum.add) for_vector(width, [=](int64_t j) { target[j] = To(A(target[j]) + factor * total[j]); });
    else for_vector(width, [=](int64_t j) { target[j] = To(factor * total[j]); });
  }
  HD void long_sum(int64_t v, int64_t count, int64_t first, int64_t width, A* part) const {
    double totals[kWidth] = {};
    double* const total = totals;
    for (int64_t k = 0; k < count; k += Rows::kLongest) {
      partial_sum(v, k, min(k + Rows::kLongest, count), first, width, part);
      for_vector(width, [=](int64_t j) { total[j] += double(part[j]); });
    }
    for_vector(width, [=](int64_t j) { part[j] = A(total[j]); });
  }
  // part = sum of the rows begin .. end - 1 of the list.
  HD void partial_sum(int64_t v, int64_t begin, int64_t end, int64_t first, int64_t width, A* part) const {
    for_vector(width, [=](int64_t j) { part[j] = 0; });
    for (int64_t k = begin; k < end; ++k) {
      const T* from = sum.x + sum.rows.row(v, k) * n + first;
      for_vector(width, [=](int64_t j) { part[j] += A(from[j]); });
    }
  }
};

// y has `outputs` rows of n elements; on the CPU a chunk has `grain` rows.
template <class T, class Rows, class To>
void sum_rows(const char* name, Device device, int64_t outputs, int64_t n, int64_t grain, const SumRows<T, Rows, To>& program) {
  if (device != Device::cpu) return for_rows(name, device, outputs, n, program);
  parallel_for(outputs, grain, [&](int64_t begin, int64_t end) { run_vectorized(SumRowsLoop<T, Rows, To>{program, n}, begin, end); });
}

}  // namespace ricci
