#include "cuda/peaks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/cpu/clock.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
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

// Fused multiply-adds on registers, with enough independent sums to hide their latency.
template <class T> struct MultiplyAdd {
  static constexpr int kSums = 16, kLanes = 64 / sizeof(T);
  T* result;
  HD void operator()(int64_t begin, int64_t end) const {
    T sum[kSums][kLanes] = {};
    for (int64_t i = begin; i < end; ++i)
#pragma GCC unroll 16
      for (int s = 0; s < kSums; ++s)
#pragma omp simd
        for (int lane = 0; lane < kLanes; ++lane) sum[s][lane] = sum[s][lane] * result[lane] + result[kLanes + lane];
    for (int s = 0; s < kSums; ++s)
      for (int lane = 0; lane < kLanes; ++lane) result[2 * kLanes + lane] += sum[s][lane];
  }
};

template <class T> double flops_in_registers() {
  constexpr int64_t kRounds = 1 << 18;
  const int64_t threads = thread_count();
  std::vector<T> numbers(static_cast<size_t>(threads) * 64, T(0.5));
  const double seconds = best_of(20,
      [&] { parallel_for(threads, 1, [&](int64_t i, int64_t) { run_vectorized(MultiplyAdd<T>{numbers.data() + i * 64}, 0, kRounds); }); });
  return 2.0 * MultiplyAdd<T>::kSums * MultiplyAdd<T>::kLanes * kRounds * static_cast<double>(threads) / seconds;
}

double flops_of_product(Device device, Dtype dtype) {
  const int64_t n = std::array{1536, 8192, 16}[static_cast<size_t>(device)];
  // Random numbers, because a GPU that multiplies zeros needs less power and so runs faster than it ever does in training.
  const Tensor a = randn({n, n}, 1, dtype, device), c = zeros({n, n}, dtype, device);
  const MatrixAt strides{n, 1, 0};
  const double seconds = best_of(4, [&] {
    // clang-format off
    gemm({.device = device, .dtype = dtype, .batch = 1, .m = n, .n = n, .k = n, .a = a.raw(), .b = a.raw(), .a_at = strides, .b_at = strides,
          .c = c.raw(), .c_at = strides});
    // clang-format on
    synchronize(device);
  });
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds;
}

// y += x, element by element. Every line of memory that is written has been read, so that none is fetched unasked.
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
