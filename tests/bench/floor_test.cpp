// The floor of a step: the least possible time of its work at the measured peaks. If a step is faster than its floor, the peaks are too
// low, and the benchmarks end with an error. The loop that measures the CPU's peak must be faster than any product.
#include <algorithm>

#include "cuda/gemm/gemm.h"
#include "cuda/peaks.h"
#include "tests/bench/measured_steps.h"
#include "tests/data/files.h"
#include "tests/sanitized.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

double flops_of_square_product(Dtype dtype) {
  constexpr int64_t n = 512;
  const Tensor a = randn({n, n}, 1, dtype), c = zeros({n, n}, dtype, Device::cpu);
  const MatrixAt at{n, 1, 0};
  double best = 1e30;
  for (int i = 0; i < 20; ++i) {
    const double started = seconds_now();
    gemm({.device = Device::cpu,
        .dtype = dtype,
        .batch = 1,
        .m = n,
        .n = n,
        .k = n,
        .a = a.raw(),
        .b = a.raw(),
        .a_at = at,
        .b_at = at,
        .c = c.raw(),
        .c_at = at});
    best = std::min(best, seconds_now() - started);
  }
  return 2.0 * n * n * n / best;
}

}  // namespace

TEST_CASE("a floor above the fastest step is an error, one below is printed") {
  const bench::Steps steps{.seconds = {0.5, 0.75, 1}};
  bench::report_floor("half", steps, 0.25);
  bench::report_floor("equal", steps, 0.5);
  CHECK_THROWS_WITH_AS(bench::report_floor("stack", steps, 0.625),
      "stack: the floor of 625.000 ms is above the fastest step of 500.000 ms: peaks measured while other programs run are too low; run it "
      "again",
      Error);
}

// One thread: other programs often slow two threads down. They can also slow down one measurement of the peak, but not all of them. A loop
// with its sums in memory is slower than the product in every measurement.
TEST_CASE("the measured peak of the CPU is at least the speed of a product") {
  if (test::kSanitized) return test::skip("the speed of code with a sanitizer tells nothing");
  const test_data::Threads one(1);
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const double product = flops_of_square_product(dtype);
    double peak = 0;
    for (int i = 0; i < 20 && peak < product; ++i) peak = std::max(peak, measured_peaks(Device::cpu, dtype).flops);
    INFO(std::string(name_of(dtype)), " ", product * 1e-9, " GFLOP/s, peak ", peak * 1e-9);
    CHECK(peak >= product);
  }
}
