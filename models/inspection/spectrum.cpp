// Eigenvalues in three steps: Householder reflections make the matrix tridiagonal, the number of negative pivots is the number of
// eigenvalues below a shift, and bisection finds each eigenvalue (Golub and Van Loan, Matrix Computations, 8.3 and 8.4).
#include "models/inspection/spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dims.h"
#include "core/error.h"
#include "ops/products/products.h"

namespace ricci {
namespace {

struct Tridiagonal {
  std::vector<double> diagonal, below;  // below[i] is between diagonal[i] and diagonal[i + 1]
};

void check_matrix(const char* op, const Tensor& m_kk) {
  const Shape& shape = m_kk.shape();
  if (shape.rank() != 2 || shape[0] != shape[1]) fail("{}: {} is not a square matrix", {op, show(shape)});
  if (m_kk.dtype() != Dtype::f64 || m_kk.device() != Device::cpu) fail("{}: expected f64 on the CPU", {op});
  for (int64_t i = 0; i < m_kk.size(); ++i)
    if (!std::isfinite(m_kk.data<double>()[i])) fail("{}: element {} is not finite", {op, i});
}

// Applies a <- H a H to the rows and columns below `column`, where H = 1 - tau v v^T leaves one nonzero element in the column below the
// diagonal. Returns that element.
double reflect(std::vector<double>& a, int64_t k, int64_t column) {
  const int64_t first = column + 1;
  const auto row = [&](int64_t i) { return a.data() + i * k; };
  double norm = 0;
  for (int64_t i = first; i < k; ++i) norm = std::hypot(norm, row(i)[column]);
  const double head = row(first)[column], alpha = head > 0 ? -norm : norm;
  if (norm == std::abs(head)) return head;  // the other elements are already zero
  std::vector<double> reflection(static_cast<size_t>(k)), change(static_cast<size_t>(k));
  double *const v = reflection.data(), *const w = change.data();
  for (int64_t i = first; i < k; ++i) v[i] = (row(i)[column] - (i == first ? alpha : 0)) / (head - alpha);
  const double tau = (alpha - head) / alpha;
  // a - v w^T - w v^T with w = tau a v - (tau^2 v^T a v / 2) v
  double half = 0;
  for (int64_t i = first; i < k; ++i) {
    const double* const row_i = row(i);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = first; j < k; ++j) sum += row_i[j] * v[j];
    w[i] = tau * sum;
    half += tau * v[i] * w[i] / 2;
  }
  for (int64_t i = first; i < k; ++i) w[i] -= half * v[i];
  for (int64_t i = first; i < k; ++i) {
    double* const row_i = row(i);
    const double v_i = v[i], w_i = w[i];
#pragma omp simd
    for (int64_t j = first; j < k; ++j) row_i[j] -= v_i * w[j] + w_i * v[j];
  }
  return alpha;
}

Tridiagonal tridiagonal(const Tensor& m_kk) {
  const int64_t k = m_kk.shape()[0];
  std::vector<double> a(m_kk.data<double>(), m_kk.data<double>() + m_kk.size());
  Tridiagonal t;
  for (int64_t column = 0; column < k; ++column) {
    if (column + 1 < k) t.below.push_back(reflect(a, k, column));
    t.diagonal.push_back(a[static_cast<size_t>(column * k + column)]);
  }
  return t;
}

// Counts the negative pivots of T - x, one for each eigenvalue below x.
size_t count_below(const Tridiagonal& t, double x, double smallest) {
  size_t count = 0;
  double pivot = 1;
  for (size_t i = 0; i < t.diagonal.size(); ++i) {
    const double side = i ? t.below[i - 1] : 0;
    pivot = t.diagonal[i] - x - side * side / pivot;
    if (std::abs(pivot) < smallest) pivot = -smallest;
    count += pivot < 0;
  }
  return count;
}

}  // namespace

std::vector<double> eigenvalues(const Tensor& m_kk) {
  check_matrix("eigenvalues", m_kk);
  const Tridiagonal t = tridiagonal(m_kk);
  const size_t k = t.diagonal.size();
  double bound = 0;  // Gershgorin's bound
  for (size_t i = 0; i < k; ++i)
    bound = std::max(bound, std::abs(t.diagonal[i]) + (i ? std::abs(t.below[i - 1]) : 0) + (i + 1 < k ? std::abs(t.below[i]) : 0));
  if (bound == 0) return std::vector<double>(k);
  constexpr double kEps = std::numeric_limits<double>::epsilon();
  const double smallest = std::max(bound * kEps * kEps, std::numeric_limits<double>::min());
  std::vector<double> values(k);
  for (size_t n = 0; n < k; ++n) {
    double low = -bound * (1 + 4 * kEps) - smallest, high = -low;
    while (high - low > 2 * kEps * std::max(bound * 0.25, std::max(std::abs(low), std::abs(high)))) {
      const double middle = low + (high - low) / 2;
      (count_below(t, middle, smallest) > n ? high : low) = middle;
    }
    values[k - 1 - n] = low + (high - low) / 2;
  }
  return values;
}

std::vector<double> singular_values(const Tensor& m_kk) {
  check_matrix("singular_values", m_kk);
  std::vector<double> values = eigenvalues(contract("ki,kj->ij", m_kk, m_kk));
  for (double& value : values) value = std::sqrt(std::max(value, 0.0));
  return values;
}

}  // namespace ricci
