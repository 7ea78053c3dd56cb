// Products by cuBLASLt on the stub: a refused call, a wrong layout and a bias of another product are noticed; epilogues, timed algorithms.
#include "ops/products/products.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cuda/device/device.h"
#include "cuda/device/graph.h"
#include "cuda/device/stream.h"
#include "cuda/gemm/cublas/tuned_products.h"
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
      ++t.m;  // a plan of its own
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
  CHECK(written_by([&] { CHECK(multiplied(t) <= 1); }).find("does not read such strides") != std::string::npos);
  const Case with_bias{1, 39, 5, 4, Layout::rows, Layout::columns, Layout::rows, false, true};
  stub::fail_call("cublasLtMatmulAlgoGetHeuristic", 1, kInvalidValue);  // a bias that the library refuses
  CHECK(written_by([&] { CHECK(multiplied(with_bias) <= 1); }).ends_with("k 4, bias); our own, slower kernel computes it\n"));
}

TEST_CASE("a plan is used for many products, each with its own bias") {
  const Tensor a_mk = drawn({4, 3}, Dtype::f64, Device::cuda, 1), b_kn = drawn({3, 2}, Dtype::f64, Device::cuda, 2);
  const Tensor first = tensor_of({1, 2}, {2}, Dtype::f64, Device::cuda);
  const Tensor second = tensor_of({3, 5}, {2}, Dtype::f64, Device::cuda);  // both live: the first is no invalid memory
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
  CHECK(item(c) == 1);  // 257 - 256; 257 is no number of bf16
}

TEST_CASE("products of two streams have a workspace each") {
  const Case t{1, 8, 8, 8};
  CHECK(multiplied(t) <= 1);
  const Stream side(Device::cuda);
  side.wait_for(Stream::main(Device::cuda));
  const OnStream on(side);
  CHECK(multiplied(t) <= 1);
}

// ---- Epilogues

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
  const int before = stub::algorithms_run();
  const Values sums = values_of(gemm_with_row_sums(taken.product, taken.a_km, Dtype::f32)), c = values_of(taken.c_mn);
  CHECK(stub::algorithms_run() == before + 1);
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
        "(f32, batch 1, m " + std::to_string(m) + ", n 8, k 6, row sums); such products are computed without, and the rest after them\n"));
    CHECK(got == values_of(sum_to(refused.a_km, {m})));
    CHECK(written_by([&] { gemm_with_row_sums(refused.product, refused.a_km, Dtype::f32); }).empty());
    const WithSums again(++m);
    stub::fail_call(call, 1, kNotSupported);
    CHECK(written_by([&] { got = values_of(gemm_with_row_sums(again.product, again.a_km, Dtype::f32)); }).empty());
    CHECK(got == values_of(sum_to(again.a_km, {m})));
  }
}

TEST_CASE("gelu and its slope come with the products, where rows have 8, 16, ... elements") {
  for (const int64_t f : {16, 12}) {
    const Tensor x_rd = drawn({6, 4}, Dtype::bf16, Device::cuda, 1), w_fd = drawn({f, 4}, Dtype::bf16, Device::cuda, 2);
    const Tensor bias_f = drawn({f}, Dtype::bf16, Device::cuda, 3), a_rf({6, f}, Dtype::bf16, Device::cuda), h_rf = like(a_rf);
    // clang-format off
    Gemm g{.device = Device::cuda, .dtype = Dtype::bf16, .batch = 1, .m = 6, .n = f, .k = 4, .a = x_rd.raw(), .b = w_fd.raw(),
           .a_at = {4, 1, 0}, .b_at = {1, 4, 0}, .c = a_rf.raw(), .c_at = {f, 1, 0}, .bias_n = bias_f.raw(),
           .epilogue = Epilogue::gelu, .beside = h_rf.raw()};
    // clang-format on
    bool taken = false;
    const std::string line = written_by([&] { taken = gemm_fused(g); });
    CHECK(taken == (f == 16));
    CHECK(line.empty() == taken);
    if (!taken) continue;
    const Values h = values_of(linear(x_rd, w_fd, bias_f)), kept = values_of(h_rf), a = values_of(gelu_tanh(h_rf)), got = values_of(a_rf);
    for (size_t i = 0; i < h.size(); ++i) CHECK(kept[i] == doctest::Approx(h[i]).epsilon(0.01));
    for (size_t i = 0; i < a.size(); ++i) CHECK(got[i] == doctest::Approx(a[i]).epsilon(0.01));
    g.beside = nullptr;  // nobody wants the sums
    CHECK(gemm_fused(g));
    CHECK(values_of(a_rf) == got);
    Gemm wide = g;
    wide.dtype = Dtype::f32;
    CHECK(written_by([&] { CHECK_FALSE(gemm_fused(wide)); }).find("computes gelu less exactly than ricci") != std::string::npos);
    g.bias_n = nullptr, g.beside = h_rf.raw(), g.epilogue = Epilogue::gelu_gradient;
    CHECK(gemm_fused(g));
    const Values da = values_of(gelu_tanh_backward(linear(x_rd, w_fd, Tensor()), h_rf)), dh = values_of(a_rf);
    for (size_t i = 0; i < dh.size(); ++i) CHECK(dh[i] == doctest::Approx(da[i]).epsilon(0.02));
  }
}

// ---- Timed algorithms

namespace {

struct Tuning {
  std::string file = std::filesystem::temp_directory_path() / ("ricci-products-" + std::to_string(::getpid()));

  Tuning() { begin(); }
  ~Tuning() {
    tune_products({});
    std::filesystem::remove(file);
    stub::set_times({3, 1, 2});
  }
  void begin() const { tune_products(TunedProducts(file)); }
  std::vector<std::string> lines() const {
    std::ifstream in(file);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
};

}  // namespace

TEST_CASE("the fastest algorithm is kept, so that a run that goes on has the same, whatever is the fastest then") {
  const Case t{1, 21, 8, 8}, added{1, 21, 8, 16, Layout::rows, Layout::rows, Layout::padded_rows, true};
  const Tuning tuning;
  CHECK(multiplied(t) <= 1);
  CHECK(stub::last_algorithm() == 1);
  const int before = stub::algorithms_run();
  CHECK(multiplied(t) <= 1);
  CHECK(stub::algorithms_run() == before + 1);  // timed once
  CHECK(multiplied(added) <= 1);                // no run for the clock is added to c
  REQUIRE(tuning.lines().size() == 3);
  CHECK(tuning.lines()[0] == "cuBLASLt 130000 on stub of an H200");
  stub::set_times({1, 2, 3});
  tuning.begin();
  CHECK(multiplied(t) <= 1);
  CHECK(stub::last_algorithm() == 1);
  std::filesystem::remove(tuning.file);
  tuning.begin();
  CHECK(multiplied(t) <= 1);
  CHECK(stub::last_algorithm() == 0);
}

TEST_CASE("an algorithm that refuses is not the fastest; a GPU that cannot be timed is an error") {
  const Case t{1, 22, 8, 8};
  const Tuning tuning;
  stub::fail_call("cublasLtMatmul", 5, kNotSupported);  // the first run of algorithm 1
  CHECK(multiplied(t) <= 1);
  CHECK(stub::last_algorithm() == 2);
  Case next = t;
  for (const char* call : {"cudaEventCreateWithFlags", "cudaEventRecord", "cudaEventSynchronize", "cudaEventElapsedTime", "cudaGetDevice",
           "cudaGetDeviceProperties"}) {
    ++next.m;
    stub::fail_call(call, 1, 999);
    CHECK(message_of([&] { multiplied(next); }).find("stub error 999") != std::string::npos);
    stub::forgive();
    CHECK(multiplied(next) <= 1);
  }
}

TEST_CASE("while a graph is recorded nothing is timed") {
  const WithSums first(23), second(24);
  const Tuning tuning;
  Graph graph(Device::cuda);
  graph.measure([&] { gemm(second.product); });
  graph.record([&] { gemm(first.product); });
  graph.launch();
  synchronize(Device::cuda);
  CHECK(stub::last_algorithm() == 0);
  CHECK(tuning.lines().size() == 3);
}

TEST_CASE("a file of algorithms: those of another library are forgotten, and what is no such file is an error") {
  const Tuning tuning;
  const auto write = [&](const std::string& text) { std::ofstream(tuning.file) << text; };
  write("cuBLASLt 120000 on another GPU\n1 2 3 = 4 5 6\n");
  TunedProducts old{tuning.file};
  CHECK(*old.find("1 2 3") == "4 5 6");
  CHECK(written_by([&] { old.made_by("cuBLASLt 130000 on this GPU"); }) ==
        tuning.file + ": made by cuBLASLt 120000 on another GPU; products are timed again for cuBLASLt 130000 on this GPU\n");
  CHECK(old.find("1 2 3") == nullptr);
  write("cuBLASLt 130000 on stub of an H200\n1 2 3\n");
  CHECK(message_of([&] { tuning.begin(); }) == tuning.file + ": line 2 is not PRODUCT = ALGORITHM");
  std::filesystem::remove(tuning.file);
  tuning.begin();
  const Case t{1, 31, 8, 8};
  CHECK(multiplied(t) <= 1);
  const std::string line = tuning.lines()[1];
  write(tuning.lines()[0] + "\n" + line.substr(0, line.find('=')) + "= 12 x\n");
  tuning.begin();
  CHECK(message_of([&] { multiplied(t); }) == tuning.file + ": '12 x' is not among the algorithms that cuBLASLt proposes for this product");
}
