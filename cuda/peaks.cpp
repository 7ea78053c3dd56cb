// Measures speeds. A vendor's figure ignores the clock under load and the number of threads.
#include "cuda/peaks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/cpu/available.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/cpu/vectors.h"
#include "cuda/device/device.h"
#include "cuda/gemm/gemm.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

double best_of(int times, const auto& work) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const double start = seconds_now();
    work();
    best = std::min(best, seconds_now() - start);
  }
  return best;
}

// Multiply-adds in registers: enough sums to hide the latency of each operation, and few enough for the 16 registers of AVX2, including
// both factors. With sums in memory, the measured peak would be below the speed of a product.
template <class T, int Bytes> struct MultiplyAdd {
  static constexpr int kSums = 12, kLanes = Vectors<T, Bytes>::kLanes;
  using Vector = typename Vectors<T, Bytes>::Vector;
  T* numbers;
  HD void operator()(int64_t begin, int64_t end) const {
    Vector factor, addend, sum[kSums];
    Vectors<T, Bytes>::load(numbers, factor);
    Vectors<T, Bytes>::load(numbers + kLanes, addend);
#pragma GCC unroll 16
    for (int s = 0; s < kSums; ++s) sum[s] = addend * T(s);  // all different, so the compiler cannot compute only one of them
    for (int64_t i = begin; i < end; ++i)
#pragma GCC unroll 16
      for (int s = 0; s < kSums; ++s) sum[s] = sum[s] * factor + addend;
#pragma GCC unroll 16
    for (int s = 1; s < kSums; ++s) sum[0] += sum[s];
    Vectors<T, Bytes>::store(numbers, sum[0]);
  }
};

template <class T> double flops_in_registers() {
  constexpr int64_t kRounds = 1 << 18;
  const int64_t threads = thread_count();
  std::vector<T> numbers(static_cast<size_t>(threads) * 64, T(0.5));
  double flops = 0;
  with_vectors([&](auto bytes) {
    using Loop = MultiplyAdd<T, bytes()>;
    const double seconds = best_of(200, [&] {
      parallel_for(threads, 1, [&](int64_t i, int64_t) { run_with_vectors<bytes()>(Loop{numbers.data() + i * 64}, 0, kRounds); });
    });
    flops = 2.0 * Loop::kSums * Loop::kLanes * kRounds * static_cast<double>(threads) / seconds;
  });
  return flops;
}

double flops_of_product(Device device, Dtype dtype) {
  const int64_t n = std::array{1536, 8192, 16}[static_cast<size_t>(device)];
  // Random numbers: a GPU multiplies zeros faster, with less power.
  const Tensor a = randn({n, n}, 1, dtype, device), c = zeros({n, n}, dtype, device);
  const double seconds = best_of(4, [&] {
    gemm(product(c, a, a));
    synchronize(device);
  });
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds;
}

// y += x, element by element. The processor reads every line of memory before it writes to it, so y is read in any case.
struct AddTo {
  const float* x;
  float* y;
  HD void operator()(int64_t begin, int64_t end) const {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] += x[i];
  }
};

double bandwidth(Device device) {
  constexpr int64_t kChunk = 1 << 16;
  const int64_t floats = int64_t{1} << std::array{25, 28, 10}[static_cast<size_t>(device)];
  const Tensor x = zeros({floats}, Dtype::f32, device), y = zeros({floats}, Dtype::f32, device);
  const double seconds = best_of(device == Device::cuda ? 5 : 3, [&] {
    if (device != Device::cpu) {
      add_to(y, x);
      return synchronize(device);
    }
    parallel_for(floats, kChunk, [&](int64_t begin, int64_t end) { run_vectorized(AddTo{x.data<float>(), y.data<float>()}, begin, end); });
  });
  return 3.0 * static_cast<double>(x.bytes()) / seconds;
}

}  // namespace

Peaks measured_peaks(Device device, Dtype dtype) {
  if (device != Device::cpu || dtype == Dtype::bf16) return {flops_of_product(device, dtype), bandwidth(device)};
  return {dtype == Dtype::f64 ? flops_in_registers<double>() : flops_in_registers<float>(), bandwidth(device)};
}

}  // namespace ricci
