// Matrix products against the definition, in every layout, dtype and on every device.
#include "cuda/gemm/backends.h"
#include "cuda/gemm/load_cublas.h"
#include "tests/cuda/gemm/cases.h"
#include "tests/data/files.h"
#include "tests/skip.h"

using namespace gemm_cases;

namespace {

// On the CPU also the fallback of gemm.
double worst_of_all(const Case& t, Dtype dtype, Device device) {
  return device == Device::cpu ? worst_of(t, dtype, device, {gemm, gemm_blocked}) : worst_of(t, dtype, device);
}

}  // namespace

TEST_CASE("combinations of layouts, accumulation and bias: all pairs, or all of them") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const int64_t m = device == Device::cpu ? 33 : 9, n = device == Device::cpu ? 65 : 19, k = device == Device::cpu ? 47 : 18;
    for (int a = 0; a < 5; ++a)
      for (int b = 0; b < 5; ++b)
        for (int c = 0; c < 5; ++c)
          for (int flags = 0; flags < 4; ++flags) {
            if (!test::everything() && (c != (a + b) % 5 || flags != (a + 3 * b) % 4)) continue;
            INFO("a ", a, ", b ", b, ", c ", c, ", flags ", flags);
            CHECK(
                worst_of_all({2, m, n, k, kLayouts[a], kLayouts[b], kLayouts[c], (flags & 1) != 0, (flags & 2) != 0}, dtype, device) <= 1);
          }
  });
}

TEST_CASE("odd sizes, every layout in turn") {
  const std::vector<int64_t> sizes = {1, 2, 3, 7, 17, 33, 65};
  on_every_device_and_dtype([&](Device device, Dtype dtype) {
    size_t turn = 0;
    for (int64_t m : sizes)
      for (int64_t n : sizes)
        for (int64_t k : sizes) {
          const bool takes_turn = ++turn % 11 == 0 || (device == Device::cpu && (turn % 11 == 5 || test::everything()));
          if (!takes_turn) continue;
          const Layout a = kLayouts[turn % 5], b = kLayouts[turn / 5 % 5], c = kLayouts[turn / 25 % 5];
          INFO("m ", m, ", n ", n, ", k ", k);
          CHECK(worst_of_all({turn % 3 == 0 ? 3 : 1, m, n, k, a, b, c, turn % 2 == 0, turn % 7 < 3}, dtype, device) <= 1);
        }
  });
}

TEST_CASE("products that are cut into blocks, pieces and tasks") {
  const std::vector<Case> cases = {
      {1, 200, 130, 1100},
      {1, 1100, 50, 70, Layout::columns, Layout::rows},  // gradients of weights with many rows
      {1, 40, 1100, 70, Layout::columns, Layout::rows, Layout::rows, true},
      {1, 700, 300, 60, Layout::rows, Layout::columns, Layout::padded_rows, false, true},
      {30, 64, 32, 64, Layout::rows, Layout::columns, Layout::rows, true, true},
      {1, 1, 700, 300, Layout::rows, Layout::columns, Layout::rows, true, true},
      {3, 4, 300, 90, Layout::rows, Layout::rows, Layout::columns},
      {2, 300, 1, 90},
      {2, 7, 9, 9001, Layout::rows, Layout::columns, Layout::padded_rows, true, true},
      {1, 530, 33, 90, Layout::columns, Layout::rows, Layout::rows, false, true},
      {1, 20, 4200, 35, Layout::rows, Layout::rows, Layout::padded_rows, true},
      {1, 45, 77, 2101, Layout::columns, Layout::columns, Layout::padded_rows, true, true},
      {1, 150, 90, 1201, Layout::columns, Layout::rows},  // gradients of weights over many tokens
      {1, 33, 65, 513, Layout::columns, Layout::rows},
      {1, 530, 70, 65, Layout::padded_rows, Layout::columns, Layout::rows, false, true},  // many rows
      {1, 520, 4100, 20, Layout::rows, Layout::columns},
      {1, 230, 528, 700, Layout::rows, Layout::rows, Layout::rows, true, true},  // multiple blocks of rows and of terms, in parts
      {1, 230, 70, 1024},                                                        // lines that fall into the same sets of a cache
      {1, 70, 512, 230, Layout::columns},
  };
  for (Case t : cases)
    for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
      INFO("m ", t.m, ", n ", t.n, ", k ", t.k, ", dtype ", std::string(name_of(dtype)));
      CHECK(worst_of_all(t, dtype, Device::cpu) <= 1);
    }
}

TEST_CASE("bf16 factors, c in f32") {
  on_every_device([](Device device) {
    for (Layout c : kLayouts)
      for (int64_t m : {1, 3, 19})
        for (bool accumulate : {false, true}) {
          const Case t{2, m, 17, 33, Layout::rows, Layout::columns, c, accumulate, true, true};
          CHECK(worst_of_all(t, Dtype::bf16, device) <= 1);
        }
  });
}

TEST_CASE("an empty sum is zero, and an empty result is allowed") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int flags = 0; flags < 4; ++flags)
      for (int64_t m : {1, 5}) {
        const Case t{2, m, 3, 0, Layout::rows, Layout::rows, Layout::rows, (flags & 1) != 0, (flags & 2) != 0};
        CHECK(worst_of(t, dtype, device) <= 1);
      }
    CHECK(worst_of({0, 2, 3, 4}, dtype, device) == 0);
    CHECK(worst_of({2, 0, 3, 4}, dtype, device) == 0);
    CHECK(worst_of({2, 2, 0, 4}, dtype, device) == 0);
  });
}

TEST_CASE("a NaN or an infinity reaches its row and column and nothing else") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const int64_t m = 5, n = 40, k = 20;
    Values a(static_cast<size_t>(m * k), 1);
    a[static_cast<size_t>(2 * k + 3)] = NAN, a[static_cast<size_t>(4 * k + 7)] = HUGE_VAL;
    const Tensor a_mk = tensor_of(a, {m, k}, dtype, device), b_kn = drawn({k, n}, dtype, device, 5), c_mn({m, n}, dtype, device);
    // clang-format off
    gemm({.device = device, .dtype = dtype, .batch = 1, .m = m, .n = n, .k = k, .a = a_mk.raw(), .b = b_kn.raw(), .a_at = {k, 1, 0},
          .b_at = {n, 1, 0}, .c = c_mn.raw(), .c_at = {n, 1, 0}});
    // clang-format on
    const Values c = values_of(c_mn);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const double value = c[static_cast<size_t>(i * n + j)];
        CHECK((i == 2 ? std::isnan(value) : i == 4 ? std::isinf(value) : std::isfinite(value)));
      }
  });
}

// Forward, input and weight gradients of a small GPT; weight gradients over many rows; one row; many small ones.
const std::vector<Case> kOneThreadOrMany = {
    {1, 768, 384, 128, Layout::rows, Layout::columns, Layout::rows, false, true},
    {1, 768, 128, 384},
    {1, 384, 128, 768, Layout::columns, Layout::rows},
    {1, 768, 65, 128, Layout::rows, Layout::columns},
    {1, 128, 512, 768, Layout::columns, Layout::rows, Layout::rows, true},
    {1, 64, 64, 4096, Layout::columns, Layout::rows},
    {1, 16, 65, 8192, Layout::columns, Layout::columns},
    {1, 70, 50, 9001, Layout::rows, Layout::rows, Layout::rows, true},
    {1, 100, 90, 3000, Layout::spaced, Layout::rows},
    {1, 1, 3000, 257, Layout::rows, Layout::columns},
    {48, 64, 32, 64, Layout::rows, Layout::rows},
    {1, 600, 500, 257, Layout::rows, Layout::columns, Layout::rows, true, true},
};
TEST_CASE("the bits do not depend on the number of threads") {
  for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16})
    for (const Case& t : kOneThreadOrMany)
      for (auto multiply : {gemm, gemm_blocked}) {
        Matrices a(t.batch, t.m, t.k, t.a), b(t.batch, t.k, t.n, t.b), c(t.batch, t.m, t.n, t.c);
        a.draw(dtype, Device::cpu, 6), b.draw(dtype, Device::cpu, 7);
        const Tensor bias = drawn({t.n}, dtype, Device::cpu, 8);
        INFO("m ", t.m, ", n ", t.n, ", k ", t.k);
        const std::vector<int> counts = {1, 3, 24};  // also more threads than the work needs
        check_threads(
            [&] {
              c.draw(dtype, Device::cpu, 9);
              multiply(product_of(t, dtype, Device::cpu, a, b, c, bias));
              return std::vector<Tensor>{c.memory};
            },
            counts);
      }
}

TEST_CASE("errors of gemm name the values") {
  // clang-format off
  Gemm g{.device = Device::cpu, .dtype = Dtype::f32, .batch = 1, .m = 1, .n = 1, .k = 1, .a = nullptr, .b = nullptr, .a_at = {}, .b_at = {},
         .c = nullptr, .c_at = {}};
  // clang-format on
  g.dtype = Dtype::i64;
  CHECK(message_of([&] { gemm(g); }) == "gemm: expected f32, f64 or bf16, got i64");
  g.dtype = Dtype::f64, g.c_f32 = true;
  CHECK(message_of([&] { gemm(g); }) == "gemm: c_f32 is for bf16, not for f64");
  g.c_f32 = false, g.k = -4;
  CHECK(message_of([&] { gemm(g); }) == "gemm: an extent is negative: batch 1 m 1 n 1 k -4");
  g.k = 1, g.device = Device::cuda;
  if (!available(Device::cuda)) CHECK(message_of([&] { gemm(g); }) == std::string("device cuda: ") + why_not(Device::cuda));
}

TEST_CASE("row sums of a product: both match their definitions, also with accumulation and with c in f32") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const int64_t m : {1, 9, 40})
      for (const bool c_f32 : {false, true}) {
        if (c_f32 && dtype != Dtype::bf16) continue;
        const int64_t n = 7, k = 33;
        const Dtype c_dtype = c_f32 ? Dtype::f32 : dtype;
        const Tensor a_km = drawn({k, m}, dtype, device, 1), b_kn = drawn({k, n}, dtype, device, 2),
                     old_mn = drawn({m, n}, c_dtype, device, 3);
        const Tensor c_mn = like(old_mn), expected_mn = like(old_mn);
        copy(c_mn, old_mn), copy(expected_mn, old_mn);
        // clang-format off
        Gemm g{.device = device, .dtype = dtype, .batch = 1, .m = m, .n = n, .k = k, .a = a_km.raw(), .b = b_kn.raw(), .a_at = {1, m, 0},
               .b_at = {n, 1, 0}, .c = expected_mn.raw(), .c_at = {n, 1, 0}, .accumulate = true, .c_f32 = c_f32};
        // clang-format on
        gemm(g);
        g.c = c_mn.raw();
        const Tensor sums_m = gemm_with_row_sums(g, a_km, c_dtype);
        if (device == Device::cuda)  // cuBLASLt uses a different algorithm
          CHECK(error_of(c_mn, values_of(expected_mn)) <= 2.02 * unit(c_dtype) + static_cast<double>(k + 2) * sum_unit(dtype));
        else CHECK(values_of(c_mn) == values_of(expected_mn));
        Values sums(static_cast<size_t>(m)), sizes(static_cast<size_t>(m));
        const Values a = values_of(a_km);
        for (size_t i = 0; i < a.size(); ++i) sums[i % sums.size()] += a[i], sizes[i % sums.size()] += std::abs(a[i]);
        CHECK(sums_m.dtype() == c_dtype);
        CHECK(error_of(sums_m, sums, sizes) <= 1.01 * unit(c_dtype) + static_cast<double>(k + 2) * sum_unit(dtype));
      }
  });
}

TEST_CASE("gradients of weights in bf16: long sums in f32, of matrices with and without gaps") {
  const std::vector<Case> cases = {
      {1, 130, 50, 1030, Layout::columns, Layout::rows, Layout::rows, false, false, true},
      {1, 270, 790, 515, Layout::columns, Layout::rows, Layout::padded_rows, true, false, true},
      {1, 60, 70, 600, Layout::rows, Layout::columns, Layout::rows, true, false, true},
      {1, 150, 49, 512, Layout::padded_columns, Layout::padded_rows, Layout::rows, false, false, true},
      {1, 49, 150, 1025, Layout::padded_rows, Layout::padded_columns, Layout::padded_rows, true, false, true},
  };
  for (const Case& t : cases) {
    CAPTURE(t.m);
    CHECK(worst_of(t, Dtype::bf16, Device::cpu) <= 1);
    Matrices a(1, t.m, t.k, t.a), b(1, t.k, t.n, t.b), c(1, t.m, t.n, t.c);
    a.draw(Dtype::bf16, Device::cpu, 6), b.draw(Dtype::bf16, Device::cpu, 7);
    check_threads([&] {
      c.draw(Dtype::f32, Device::cpu, 9);
      gemm(product_of(t, Dtype::bf16, Device::cpu, a, b, c));
      return std::vector<Tensor>{c.memory};
    });
  }
}

// ---- The library that multiplies on a GPU

namespace {

constexpr const char* kWithout = "RICCI_WITHOUT_CUBLAS";
const std::vector<std::string> kFiles{"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13"};

}  // namespace

TEST_CASE("a missing cuBLASLt is an error of one line that names the tried files and a way out") {
  for (const char* value : {static_cast<const char*>(nullptr), "", "0"}) {
    const test_data::ScopedVariable asked(kWithout, value);
    CHECK_THROWS_WITH_AS(load_cublas(kFiles, [](const std::string& file) { return file[0] == '/' ? "lacks cublasLtMatmul" : "not found"; }),
        "gemm: cuBLASLt cannot be loaded from libcublasLt.so.13 (not found), /usr/local/cuda/lib64/libcublasLt.so.13 (lacks "
        "cublasLtMatmul); "
        "set LD_LIBRARY_PATH to its folder, or RICCI_WITHOUT_CUBLAS=1 to use our own, slower kernels",
        Error);
  }
}

TEST_CASE("the first file that can be loaded is taken; with RICCI_WITHOUT_CUBLAS=1 none is tried") {
  const test_data::ScopedVariable asked(kWithout, nullptr);
  std::vector<std::string> tried;
  const auto load_from = [&](const std::string& there) {
    tried.clear();
    return load_cublas(kFiles, [&](const std::string& file) {
      tried.push_back(file);
      return file == there ? "" : "not found";
    });
  };
  CHECK(load_from(kFiles[0]));
  CHECK(tried.size() == 1);
  CHECK(load_from(kFiles[1]));
  CHECK(tried == kFiles);
  const test_data::ScopedVariable without(kWithout, "1");
  CHECK_FALSE(load_cublas(kFiles, [](const std::string&) -> std::string { throw Error("tried to load"); }));
}
