// Products by cuBLASLt on the stub: a refused call, a wrong layout and a bias of a different product are noticed; row sums.
#include "ops/products/products.h"

#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/elements/activations.h"
#include "tests/cuda/gemm/cases.h"
#include "tests/cuda/stub/stub.h"

using namespace gemm_cases;
using stub::written_by;

namespace {

constexpr int kNotSupported = 15, kInvalidValue = 7, kInternalError = 14;

double multiplied(const Case& t, Dtype dtype = Dtype::f32) { return worst_of(t, dtype, Device::cuda); }

}  // namespace

TEST_CASE("every call of cuBLASLt that fails is an error with the product, and none of them a wrong result") {
  Case t{1, 6, 5, 4, Layout::rows, Layout::columns, Layout::rows, false, true};
  for (const char* call : {"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
           "cublasLtMatrixLayoutSetAttribute", "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute",
           "cublasLtMatmulPreferenceDestroy", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"})
    for (int nth = 1; nth <= (std::string(call).ends_with("SetAttribute") ? 4 : 1); ++nth) {
      ++t.m;  // a new plan
      stub::fail_call(call, nth, kInternalError);
      CAPTURE(std::string(call));
      CHECK(message_of([&] { multiplied(t); }) ==
            "gemm: " + std::string(call) + " reports status 14 for f32, batch 1, m " + std::to_string(t.m) + ", n 5, k 4, bias");
      stub::forgive();
      CHECK(multiplied(t) <= 1);
    }
}

TEST_CASE("a product that cuBLASLt has no way for is ours, and stderr says so once") {
  Case t{1, 40, 5, 4};
  for (const char* call : {"cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul", "no algorithm"}) {
    ++t.m;
    stub::fail_call(call, 1, kNotSupported);
    const std::string line = written_by([&] { CHECK(multiplied(t) <= 1); });
    CHECK(line.starts_with("gemm: cuBLASLt "));
    CHECK(line.ends_with("(f32, batch 1, m " + std::to_string(t.m) + ", n 5, k 4); our own, slower kernel computes it\n"));
    CHECK(written_by([&] { CHECK(multiplied(t) <= 1); }).empty());
  }
  t.a = Layout::spaced;
  CHECK(written_by([&] { CHECK(multiplied(t) <= 1); }).find("does not support such strides") != std::string::npos);
  const Case with_bias{1, 39, 5, 4, Layout::rows, Layout::columns, Layout::rows, false, true};
  stub::fail_call("cublasLtMatmulAlgoGetHeuristic", 1, kInvalidValue);  // a bias that the library refuses
  CHECK(written_by([&] { CHECK(multiplied(with_bias) <= 1); }).ends_with("k 4, bias); our own, slower kernel computes it\n"));
}

TEST_CASE("a plan is used for many products, each with its own bias") {
  const Tensor a_mk = drawn({4, 3}, Dtype::f64, Device::cuda, 1), b_kn = drawn({3, 2}, Dtype::f64, Device::cuda, 2);
  const Tensor first = tensor_of({1, 2}, {2}, Dtype::f64, Device::cuda);
  const Tensor second = tensor_of({3, 5}, {2}, Dtype::f64, Device::cuda);  // both exist, so the memory of the first is valid
  const auto product = [&](const Tensor& bias_n) {
    const Tensor c({4, 2}, Dtype::f64, Device::cuda);
    // clang-format off
    gemm({.device = Device::cuda, .dtype = Dtype::f64, .batch = 1, .m = 4, .n = 2, .k = 3, .a = a_mk.raw(), .b = b_kn.raw(),
          .a_at = {3, 1, 0}, .b_at = {2, 1, 0}, .c = c.raw(), .c_at = {2, 1, 0}, .bias_n = bias_n.raw()});
    // clang-format on
    return values_of(c);
  };
  const Values with_first = product(first), with_second = product(second);
  for (size_t i = 0; i < with_first.size(); ++i) CHECK(with_second[i] - with_first[i] == doctest::Approx(i % 2 ? 3 : 2));
}

TEST_CASE("matrices that begin at any element") {
  const Tensor a = drawn({7}, Dtype::f64, Device::cuda, 1), b = drawn({7}, Dtype::f64, Device::cuda, 2), c({5}, Dtype::f64, Device::cuda);
  // clang-format off
  gemm({.device = Device::cuda, .dtype = Dtype::f64, .batch = 1, .m = 2, .n = 2, .k = 3, .a = a.data<double>() + 1,
        .b = b.data<double>() + 1, .a_at = {3, 1, 0}, .b_at = {2, 1, 0}, .c = c.data<double>() + 1, .c_at = {2, 1, 0}});
  // clang-format on
  const Values x = values_of(a), y = values_of(b), z = values_of(c);
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 2; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += x[1 + 3 * i + k] * y[1 + 2 * k + j];
      CHECK(z[1 + 2 * i + j] == doctest::Approx(sum));
    }
}

// A long sum of terms that cancel: parts rounded to bf16 are off by whole units.
TEST_CASE("no part of a bf16 sum is rounded") {
  const int64_t k = 64;
  Values a(static_cast<size_t>(k), 1), b(static_cast<size_t>(k), 1);
  for (size_t i = 0; i < a.size(); ++i) b[i] = i < 16 ? 16 + static_cast<double>(i % 2) / 8 : i < 32 ? -16 : 0;
  const Tensor a_mk = tensor_of(a, {1, k}, Dtype::bf16, Device::cuda), b_kn = tensor_of(b, {k, 1}, Dtype::bf16, Device::cuda);
  const Tensor c({1, 1}, Dtype::bf16, Device::cuda);
  // clang-format off
  gemm({.device = Device::cuda, .dtype = Dtype::bf16, .batch = 1, .m = 1, .n = 1, .k = k, .a = a_mk.raw(), .b = b_kn.raw(),
        .a_at = {k, 1, 0}, .b_at = {1, 1, 0}, .c = c.raw(), .c_at = {1, 1, 0}});
  // clang-format on
  CHECK(item(c) == 1);  // 257 - 256; bf16 does not have 257
}

// ---- Row sums

namespace {

// A gradient of weights and of a bias: c_mn = a_km b_kn.
struct WithSums {
  Tensor a_km, b_kn, c_mn;
  Gemm product;

  explicit WithSums(int64_t m)
      : a_km(drawn({6, m}, Dtype::f32, Device::cuda, 1)),
        b_kn(drawn({6, 8}, Dtype::f32, Device::cuda, 2)),
        c_mn({m, 8}, Dtype::f32, Device::cuda),
        // clang-format off
        product{.device = Device::cuda, .dtype = Dtype::f32, .batch = 1, .m = m, .n = 8, .k = 6, .a = a_km.raw(), .b = b_kn.raw(),
                .a_at = {1, m, 0}, .b_at = {8, 1, 0}, .c = c_mn.raw(), .c_at = {8, 1, 0}} {}
  // clang-format on
};

}  // namespace

TEST_CASE("row sums come with the product; if the library refuses them, stderr says so once for all shapes, and a kernel of ours sums") {
  const WithSums taken(11);
  const int before = stub::products_run();
  const Values sums = values_of(gemm_with_row_sums(taken.product, taken.a_km, Dtype::f32)), c = values_of(taken.c_mn);
  CHECK(stub::products_run() == before + 1);
  const Values own = values_of(sum_to(taken.a_km, {11}));
  for (size_t i = 0; i < own.size(); ++i) CHECK(sums[i] == doctest::Approx(own[i]));
  int64_t m = 12;
  for (const char* call : {"cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"}) {
    const WithSums refused(++m);
    stub::fail_call(call, 1, kNotSupported);
    Values got;
    const std::string line = written_by([&] { got = values_of(gemm_with_row_sums(refused.product, refused.a_km, Dtype::f32)); });
    CHECK(line.starts_with("gemm: cuBLASLt "));
    CHECK(line.ends_with(
        "(f32, batch 1, m " + std::to_string(m) + ", n 8, k 6, row sums); our own kernel adds up the rows after such products\n"));
    CHECK(got == values_of(sum_to(refused.a_km, {m})));
    CHECK(written_by([&] { gemm_with_row_sums(refused.product, refused.a_km, Dtype::f32); }).empty());
    const WithSums again(++m);
    stub::fail_call(call, 1, kNotSupported);
    CHECK(written_by([&] { got = values_of(gemm_with_row_sums(again.product, again.a_km, Dtype::f32)); }).empty());
    CHECK(got == values_of(sum_to(again.a_km, {m})));
  }
}
