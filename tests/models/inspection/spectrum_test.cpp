// Spectra of matrices with known eigenvalues.
#include "models/inspection/spectrum.h"

#include <numeric>

#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// Q D Q^T with Q a product of reflections of random vectors.
Tensor with_eigenvalues(const Values& values, uint64_t seed) {
  const auto k = static_cast<int64_t>(values.size());
  Tensor m = zeros({k, k}, Dtype::f64, Device::cpu);
  for (int64_t i = 0; i < k; ++i) m.data<double>()[i * k + i] = values[static_cast<size_t>(i)];
  for (uint64_t n = 0; n < 3; ++n) {
    const Tensor v = drawn({k}, Dtype::f64, Device::cpu, seed + n);
    double norm = 0;
    for (int64_t i = 0; i < k; ++i) norm += item(v, i) * item(v, i);
    Tensor h = zeros({k, k}, Dtype::f64, Device::cpu);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j) h.data<double>()[i * k + j] = (i == j) - 2 * item(v, i) * item(v, j) / norm;
    m = contract("ij,jk->ik", contract("ij,jk->ik", h, m), h);
  }
  return m;
}

}  // namespace

TEST_CASE("spectrum: the eigenvalues that a matrix was made from, also negative, repeated and zero ones") {
  for (const Values& values : {Values{3}, Values{2, -1}, Values{5, 5, 5}, Values{0, 0, 0, 0}, Values{7, 1, 1, 0, -1e-3, -2},
           Values{1e150, -1e150}, Values{1e-150, 3e-150}}) {
    const std::vector<double> got = eigenvalues(with_eigenvalues(values, 3));
    REQUIRE(got.size() == values.size());
    double largest = 0;
    for (double v : values) largest = std::max(largest, std::abs(v));
    Values sorted = values;
    std::sort(sorted.rbegin(), sorted.rend());
    for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - sorted[i]) <= 2e-14 * largest);
  }
  Values many(60);
  std::iota(many.begin(), many.end(), -20.0);
  const std::vector<double> got = eigenvalues(with_eigenvalues(many, 9));
  for (size_t i = 0; i < 60; ++i) CHECK(std::abs(got[i] - (39 - static_cast<double>(i))) < 1e-12);
}

TEST_CASE("spectrum: singular values of a product of known ones") {
  const Tensor d = with_eigenvalues({4, 2, 1, 0}, 3), rotated = contract("ij,jk->ik", d, with_eigenvalues({1, -1, 1, 1}, 8));
  const std::vector<double> got = singular_values(rotated);
  const double expected[] = {4, 2, 1, 0};
  for (size_t i = 0; i < 4; ++i) CHECK(std::abs(got[i] - expected[i]) < (i == 3 ? 1e-7 : 1e-13));
}

TEST_CASE("spectrum: inputs that are not square matrices of finite numbers") {
  CHECK(message_of([] { eigenvalues(zeros({2, 3}, Dtype::f64, Device::cpu)); }) == "eigenvalues: [2 3] is not a square matrix");
  CHECK(message_of([] { singular_values(zeros({2, 2}, Dtype::f32, Device::cpu)); }) == "singular_values: expected f64 on the CPU");
  const Tensor m = zeros({2, 2}, Dtype::f64, Device::cpu);
  m.data<double>()[3] = std::nan("");
  CHECK(message_of([&] { eigenvalues(m); }) == "eigenvalues: element 3 is not finite");
}
