// Loops in the widest instruction set: the same source, the same bits where no rounding is fused.
#include "core/cpu/isa.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/skip.h"

using namespace ricci;

namespace {

struct Square {
  const float* x;
  float* y;
  void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) y[i] = x[i] * x[i];
  }
};

// The squares of 0, 1, .. 102 but for the first and the last two, which stay -1.
std::vector<float> squares(void (*run)(Square, int64_t, int64_t)) {
  std::vector<float> x, y(103, -1);
  for (int i = 0; i < 103; ++i) x.push_back(static_cast<float>(i));
  run(Square{x.data(), y.data()}, 1, 101);
  return y;
}

void check_squares(const std::vector<float>& y) {
  for (int i = 0; i < 103; ++i) CHECK(y[static_cast<size_t>(i)] == static_cast<float>(i < 1 || i > 100 ? -1 : i * i));
}

}  // namespace

TEST_CASE("a loop covers its range, and nothing else") {
  check_squares(squares(run_baseline<Square>));
  check_squares(squares([](Square f, int64_t begin, int64_t end) { run_vectorized(f, begin, end); }));
}

TEST_CASE("the widest loops run here" * doctest::test_suite("needs AVX-512")) {
  if (cpu_isa() < Isa::avx512) return test::skip(std::string("needs AVX-512, the widest here is ") + name_of(cpu_isa()));
#if defined(__x86_64__)
  check_squares(squares(run_avx2<Square>));
  check_squares(squares(run_avx512<Square>));
#endif
}
