// Shared by the tests of matrix products: matrices in every layout, and products against the definition. A sum of k rounded products in any
// order is off by at most (k + 1) u times the sum of their absolute values, with u the unit of the sums' type. The bias and an old c are
// two terms more. Storing rounds once more.
#pragma once
#include "cuda/gemm/gemm.h"
#include "tests/ops/values.h"

namespace gemm_cases {

using namespace ricci;

inline constexpr double kUntouched = 777;  // between the elements of c

enum class Layout { rows, columns, padded_rows, padded_columns, spaced };
inline constexpr Layout kLayouts[] = {Layout::rows, Layout::columns, Layout::padded_rows, Layout::padded_columns, Layout::spaced};

// A batch of matrices at an offset in a tensor.
struct Matrices {
  int64_t batch, rows, columns;
  MatrixAt at{};
  Tensor memory;

  Matrices(int64_t batch_, int64_t rows_, int64_t columns_, Layout layout) : batch(batch_), rows(rows_), columns(columns_) {
    switch (layout) {
      case Layout::rows: at = {columns, 1, 0}; break;
      case Layout::columns: at = {1, rows, 0}; break;
      case Layout::padded_rows: at = {columns + 3, 1, 0}; break;
      case Layout::padded_columns: at = {1, rows + 5, 0}; break;
      case Layout::spaced: at = {2 * columns + 1, 2, 0}; break;
    }
    at.batch_stride = rows * at.row_stride + columns * at.column_stride + (layout == Layout::rows ? 0 : 7);
  }
  int64_t elements() const { return batch * at.batch_stride; }
  size_t offset(int64_t z, int64_t i, int64_t j) const {
    return static_cast<size_t>(z * at.batch_stride + i * at.row_stride + j * at.column_stride);
  }
  void draw(Dtype dtype, Device device, uint64_t stream) { memory = drawn({elements()}, dtype, device, stream); }
};

struct Case {
  int64_t batch, m, n, k;
  Layout a = Layout::rows, b = Layout::rows, c = Layout::rows;
  bool accumulate = false, bias = false, c_f32 = false;
};

// The expected c, element by element of its memory, and a bound of the error.
struct Expected {
  Values before, after, bound;
};

inline Expected expected_of(
    const Case& t, const Matrices& a, const Matrices& b, const Matrices& c, const Tensor& bias, Dtype dtype, Dtype c_dtype, Device device) {
  const Values a_values = values_of(a.memory), b_values = values_of(b.memory), bias_values = values_of(bias);
  const Values old = values_of(drawn({c.elements()}, c_dtype, Device::cpu, 4));
  const double untouched = values_of(tensor_of({kUntouched}, {1}, c_dtype, Device::cpu))[0];
  Expected e{Values(old.size(), untouched), Values(old.size(), untouched), Values(old.size(), 0)};
  for (int64_t z = 0; z < t.batch; ++z)
    for (int64_t i = 0; i < t.m; ++i)
      for (int64_t j = 0; j < t.n; ++j) {
        const size_t at = c.offset(z, i, j);
        e.before[at] = old[at];
        double sum = t.accumulate ? old[at] : 0, size = std::abs(sum);
        const double offset_j = t.bias ? bias_values[static_cast<size_t>(j)] : 0;
        sum += offset_j, size += std::abs(offset_j);
        for (int64_t k = 0; k < t.k; ++k) {
          const double term = a_values[a.offset(z, i, k)] * b_values[b.offset(z, k, j)];
          sum += term, size += std::abs(term);
        }
        e.after[at] = sum;
        e.bound[at] = static_cast<double>(t.k + 3) * sum_unit(dtype) * size + 1.01 * unit(c_dtype) * std::abs(sum);
        // cuBLASLt adds a bias to a rounded sum if c is also added to.
        if (device == Device::cuda && t.accumulate && t.bias) e.bound[at] += 1.01 * unit(c_dtype) * std::abs(sum - offset_j);
      }
  return e;
}

// The product of a case.
inline Gemm product_of(
    const Case& t, Dtype dtype, Device device, const Matrices& a, const Matrices& b, const Matrices& c, const Tensor& bias = {}) {
  // clang-format off
  return {.device = device, .dtype = dtype, .batch = t.batch, .m = t.m, .n = t.n, .k = t.k, .a = a.memory.raw(), .b = b.memory.raw(),
          .a_at = a.at, .b_at = b.at, .c = c.memory.raw(), .c_at = c.at, .accumulate = t.accumulate,
          .bias_n = t.bias ? bias.raw() : nullptr, .c_f32 = t.c_f32};
  // clang-format on
}

// The largest error, in units of the bound, of these ways to multiply; infinite if an element outside of c was written.
inline double worst_of(const Case& t, Dtype dtype, Device device, const std::vector<void (*)(const Gemm&)>& ways = {gemm}) {
  const Dtype c_dtype = t.c_f32 ? Dtype::f32 : dtype;
  Matrices a(t.batch, t.m, t.k, t.a), b(t.batch, t.k, t.n, t.b), c(t.batch, t.m, t.n, t.c);
  a.draw(dtype, device, 1), b.draw(dtype, device, 2);
  const Tensor bias = drawn({t.n}, dtype, device, 3);
  const Expected e = expected_of(t, a, b, c, bias, dtype, c_dtype, device);
  double worst = 0;
  for (const auto multiply : ways) {
    c.memory = tensor_of(e.before, {c.elements()}, c_dtype, device);
    multiply(product_of(t, dtype, device, a, b, c, bias));
    const Values got = values_of(c.memory);
    for (size_t i = 0; i < got.size(); ++i) {
      const double off = std::abs(got[i] - e.after[i]);
      raise_to(worst, off == 0 ? 0 : off / e.bound[i]);
    }
  }
  return worst;
}

}  // namespace gemm_cases
