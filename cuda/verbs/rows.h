// for_rows(name, device, rows, n, program): program(r, row) for every row r of n elements. A program is a formula over one
// row, written once:
//   const T max = row.max([&](int64_t c) { return x_rc(r, c); });
// On the CPU the row is a vectorised loop, on the GPU a thread block. A value computed by a verb of `row` is the same in
// every thread; results are stored inside row.each, row.each_piece (cuda/verbs/lanes.h), or by row.once. A program whose only verbs
// are row.each_piece and row.max_of_pieces names kNeighbours, the elements of a piece: blocks then have no idle threads.
#pragma once
#include <type_traits>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "cuda/launch.h"
#include "cuda/verbs/lanes.h"
#include "cuda/verbs/reduce.h"

namespace ricci {

template <class T> HD constexpr T lowest() { return -T(__builtin_huge_val()); }

// The row as a thread block: thread t takes the elements t, t + blockDim, ...
struct BlockRow {
  int64_t n;
  template <class F> __device__ void each(F f) const {
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) f(i);
    __syncthreads();  // what was stored may be read by the next verb
  }
  // f(piece) for pieces of 16 bytes of rows that begin at these pointers, where pieces and the row's end are aligned; else for single
  // elements.
  template <class F, class... Ts> __device__ void each_piece(F f, const Ts*... rows) const {
    constexpr int kCount = elements_of_piece<Ts...>();
    if (n % kCount == 0 && on_16_bytes(rows...))
      for (int64_t i = int64_t{threadIdx.x} * kCount; i < n; i += int64_t{blockDim.x} * kCount) f(Piece<kCount>{i});
    else
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x) f(One{i});
    __syncthreads();
  }
  template <class F> __device__ auto sum(F f) const {
    using T = decltype(f(int64_t{0}));
    T total = 0;
    UNROLL(4)
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) total += f(i);
    return block_reduce(total, Sum{}, T(0));
  }
  template <class F> __device__ auto max(F f) const {
    using T = decltype(f(int64_t{0}));
    T most = lowest<T>();
    UNROLL(4)
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) most = Max{}(most, f(i));
    return block_reduce(most, Max{}, lowest<T>());
  }
  // The largest number of f(piece), as each_piece calls it.
  template <class F, class... Ts> __device__ auto max_of_pieces(F f, const Ts*... rows) const {
    using T = decltype(f(One{0}));
    T most = lowest<T>();
    const auto raise = [&](T value) { most = Max{}(most, value); };
    constexpr int kCount = elements_of_piece<Ts...>();
    if (n % kCount == 0 && on_16_bytes(rows...))
      for (int64_t i = int64_t{threadIdx.x} * kCount; i < n; i += int64_t{blockDim.x} * kCount) {
        const auto values = f(Piece<kCount>{i});
        UNROLL(8)
        for (int k = 0; k < kCount; ++k) raise(values.v[k]);
      }
    else
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x) raise(f(One{i}));
    return block_reduce(most, Max{}, lowest<T>());
  }
  template <class F> __device__ void once(F f) const {
    if (threadIdx.x == 0) f();
    __syncthreads();
  }
};

template <class Program> struct RowKernel {
  static constexpr int kThreads = 256;
  int64_t rows, n;
  Program program;
  __device__ void operator()() const {
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) program(r, BlockRow{n});
  }
};

// The elements that a thread of the program handles at once.
template <class Program> constexpr int neighbours_of() {
  if constexpr (requires { Program::kNeighbours; }) return Program::kNeighbours;
  else return 1;
}

// A block as wide as the row, in whole warps.
inline int threads_for_row(int64_t n) { return static_cast<int>(between<int64_t>(32, (n + 31) / 32 * 32, 256)); }

template <class Program> void for_rows(const char* name, Device device, int64_t rows, int64_t n, const Program& program);

// The same for Program<T>, where T is the element type of x: a program whose members are x and what follows it. A tensor becomes the
// pointer to its elements T, null where it is empty; other members are handed over as they are.
template <class T, class Member> auto member_of(const Member& member) {
  if constexpr (std::is_convertible_v<const Member&, const Tensor&>) return member ? member.template data<T>() : nullptr;
  else return member;
}
template <template <class> class Program, class... Members>
void for_rows_of(const char* name, int64_t rows, int64_t n, const Tensor& x, const Members&... members) {
  with_dtype(x, [&]<class T>(T) { for_rows(name, x.device(), rows, n, Program<T>{x.data<T>(), member_of<T>(members)...}); });
}

#ifndef __CUDACC__

// The row as a loop. The order of a sum depends on the width of the vectors alone, never on the number of threads.
struct LoopRow {
  int64_t n;
  template <class F> HD void each(F f) const {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) f(i);
  }
  template <class F, class... Ts> HD void each_piece(F f, const Ts*...) const {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) f(One{i});
  }
  template <class F> HD auto sum(F f) const {
    decltype(f(int64_t{0})) total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; ++i) total += f(i);
    return total;
  }
  template <class F> HD auto max(F f) const {
    using T = decltype(f(int64_t{0}));
    T most = lowest<T>();
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < n; ++i) {
      const T value = f(i);
      most = value > most ? value : most;
    }
    return most;
  }
  template <class F, class... Ts> HD auto max_of_pieces(F f, const Ts*...) const {
    return max([&](int64_t i) { return f(One{i}); });
  }
  template <class F> HD void once(F f) const { f(); }
};

template <class Program> struct RowLoop {
  int64_t n;
  Program program;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) program(r, LoopRow{n});
  }
};

template <class Program> void for_rows(const char* name, Device device, int64_t rows, int64_t n, const Program& program) {
  constexpr int64_t kGrain = 16384, kMaxBlocks = int64_t{1} << 20;
  if (device != Device::cpu) {
    const int threads = threads_for_row(n / neighbours_of<Program>());
    return launch(name, device, {rows < kMaxBlocks ? rows : kMaxBlocks, threads}, RowKernel<Program>{rows, n, program});
  }
  parallel_for(rows, n ? (kGrain + n - 1) / n : rows, [&](int64_t begin, int64_t end) {
    run_vectorized(RowLoop<Program>{n, program}, begin, end);
  });
}

#endif

// Builds the row programs F<float>, F<double> and F<bf16> for the GPU.
#define CUDA_ROWS(F)                 \
  CUDA_KERNEL(RowKernel<F<float>>);  \
  CUDA_KERNEL(RowKernel<F<double>>); \
  CUDA_KERNEL(RowKernel<F<bf16>>)

}  // namespace ricci
