// for_rows(name, device, rows, n, program) calls program(r, row) for every row r of n elements.
//
// A program is a formula over one row, written once for every device. The softmax of a row, for example, is three steps of `row`:
//   const A largest = row.max([&](int64_t c) { return A(x_rc(r, c)); });
//   const A sum = row.sum([&](int64_t c) { return e_rc(r, c) = math::exp(A(x_rc(r, c)) - largest); });
//   row.each([&](int64_t c) { p_rc(r, c) = T(e_rc(r, c) / sum); });
//
// On the CPU, `row` is a LoopRow: each step is one vectorized loop, and the CPU threads share the rows. On the GPU, it is a BlockRow: a
// thread block works on one row, all its threads run the full program, and `max` and `sum` return the same value to all threads. Code
// between the steps runs in every thread of the block, so results are stored inside a step (row.once for one number per row).
//
// A sum of floats depends on the order of its terms. `sum` keeps a fixed number of partial sums, one per lane of a vector or per thread of
// the block, and adds these up in a fixed order, so the results are bitwise identical for any number of CPU threads.
#pragma once
#include <type_traits>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "cuda/launch.h"
#include "cuda/verbs/reduce.h"

namespace ricci {

template <class T> HD constexpr T lowest() { return -T(__builtin_huge_val()); }

#ifndef __CUDACC__

// ---- On the CPU: the row as a loop

struct LoopRow {
  int64_t n;
  template <class F> HD void each(F f) const {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) f(i);
  }
  template <class F> HD auto sum(F f) const {
    if (n <= kShort) return sum_of(0, n, f);
    const int64_t longest = longest_part();
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += longest) total += sum_of(begin, min(begin + longest, n), f);
    return static_cast<decltype(f(int64_t{0}))>(total);
  }
  template <class F> HD auto max(F f) const {
    using T = decltype(f(int64_t{0}));
    T largest = lowest<T>();
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < n; ++i) {
      const T value = f(i);
      largest = value > largest ? value : largest;
    }
    return largest;
  }
  template <class F> HD void once(F f) const { f(); }
  template <class F, class... Ts> HD void each_piece(F f, const Ts*... rows) const;  // cuda/verbs/pieces.h

 private:
  // Elements of a partial sum; a longer one would have larger rounding errors. Wide vectors divide them among more lanes.
  static constexpr int64_t kShort = 512, kLong = 65536;
  static int64_t longest_part() {
#ifdef RICCI_WIDE_LOOPS
    if (cpu_isa() > Isa::baseline) return kLong;
#endif
    return kShort;
  }
  template <class F> HD static auto sum_of(int64_t begin, int64_t end, F f) {
    decltype(f(begin)) total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = begin; i < end; ++i) total += f(i);
    return total;
  }
};

template <class Program> struct RowLoop {
  int64_t n;
  Program program;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) program(r, LoopRow{n});
  }
};

#endif

// ---- On the GPU: the row as a thread block. Thread t handles the elements t, t + blockDim, ...

struct BlockRow {
  int64_t n;
  template <class F> __device__ void each(F f) const {
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) f(i);
    __syncthreads();  // the next step can read the stored numbers
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
    T largest = lowest<T>();
    UNROLL(4)
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) largest = Max{}(largest, f(i));
    return block_reduce(largest, Max{}, lowest<T>());
  }
  template <class F> __device__ void once(F f) const {
    if (threadIdx.x == 0) f();
    __syncthreads();
  }
  template <class F, class... Ts> __device__ void each_piece(F f, const Ts*... rows) const;  // cuda/verbs/pieces.h
};

template <class Program> struct RowKernel {
  static constexpr int kThreads = 256;
  int64_t rows, n;
  Program program;
  __device__ void operator()() const {
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) program(r, BlockRow{n});
  }
};

// A block as wide as the row, rounded up to full warps.
inline int threads_for_row(int64_t n) { return static_cast<int>(between<int64_t>(32, (n + 31) / 32 * 32, 256)); }

// The elements that one thread handles together: Program::kNeighbours if the program only uses each_piece (cuda/verbs/pieces.h), else 1. No
// thread of a block is then idle.
template <class Program> constexpr int neighbours_of() {
  if constexpr (requires { Program::kNeighbours; }) return Program::kNeighbours;
  else return 1;
}

// ---- The verb

template <class Program> void for_rows(const char* name, Device device, int64_t rows, int64_t n, const Program& program);

#ifndef __CUDACC__

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

// Calls for_rows with Program<T>, where T is the element type of x. The program's members are x and the arguments after it: a tensor
// becomes the pointer to its elements, or null if it is empty; other members are passed as they are.
template <class T, class Member> auto member_of(const Member& member) {
  if constexpr (std::is_convertible_v<const Member&, const Tensor&>) return member ? member.template data<T>() : nullptr;
  else return member;
}
template <template <class> class Program, class... Members>
void for_rows_of(const char* name, int64_t rows, int64_t n, const Tensor& x, const Members&... members) {
  with_dtype(x, [&]<class T>(T) { for_rows(name, x.device(), rows, n, Program<T>{x.data<T>(), member_of<T>(members)...}); });
}

// Builds the row programs F<float>, F<double> and F<bf16> for the GPU.
#define CUDA_ROWS(F)                 \
  CUDA_KERNEL(RowKernel<F<float>>);  \
  CUDA_KERNEL(RowKernel<F<double>>); \
  CUDA_KERNEL(RowKernel<F<bf16>>)

}  // namespace ricci
