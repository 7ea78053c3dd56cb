// Gradients of weights as products of bf16: long sums in f32, by tiles where the processor has them.
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "cuda/gemm/backends.h"
#include "cuda/gemm/onednn/pieces.h"
#include "tests/cuda/gemm/cases.h"
#include "tests/skip.h"

using namespace gemm_cases;

TEST_CASE("gradients of weights in bf16: long sums in f32, whose matrices have gaps or none") {
  const std::vector<Case> cases = {
      {1, 130, 50, 1030, Layout::columns, Layout::rows, Layout::rows, false, false, true},
      {1, 270, 790, 515, Layout::columns, Layout::rows, Layout::padded_rows, true, false, true},
      {1, 60, 70, 600, Layout::rows, Layout::columns, Layout::rows, true, false, true},
      {1, 150, 49, 512, Layout::padded_columns, Layout::padded_rows, Layout::rows, false, false, true},
      {1, 49, 150, 1025, Layout::padded_rows, Layout::padded_columns, Layout::padded_rows, true, false, true},
  };
  const int threads = thread_count();
  for (const Case& t : cases) {
    CAPTURE(t.m);
    CHECK(worst_of(t, Dtype::bf16, Device::cpu) <= 1);
    Matrices a(1, t.m, t.k, t.a), b(1, t.k, t.n, t.b), c(1, t.m, t.n, t.c);
    a.draw(Dtype::bf16, Device::cpu, 6), b.draw(Dtype::bf16, Device::cpu, 7);
    Tensor first;
    for (int count : {1, 2, 3, 8}) {
      set_thread_count(count);
      c.draw(Dtype::f32, Device::cpu, 9);
      gemm(product_of(t, Dtype::bf16, Device::cpu, a, b, c));
      if (!first) first = c.memory;
      CHECK(same_bits(first, c.memory));
    }
  }
  set_thread_count(threads);
}

TEST_CASE("gradients of weights in bf16 are made by tiles" * doctest::test_suite("needs AMX")) {
#ifdef RICCI_HAS_ONEDNN
  if (cpu_has_bf16_tiles()) {
    for (const Case& t : {Case{1, 150, 90, 1201, Layout::columns, Layout::rows, Layout::rows, false, false, true},
             Case{1, 270, 790, 515, Layout::padded_rows, Layout::padded_rows, Layout::padded_rows, true, false, true}})
      CHECK(worst_of(t, Dtype::bf16, Device::cpu, [](const Gemm& g) { REQUIRE(onednn::multiply_by_tiles(g)); }) <= 1);
    return;
  }
#endif
  test::skip("needs a processor that multiplies bf16 by tiles, and oneDNN");
}
