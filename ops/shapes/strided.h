// Tensors that are traversed together: all have the same extents, but each has its own strides. A tensor can be broadcast (stride 0 repeats
// an element), sliced or permuted. Adjacent indices that are contiguous in all tensors are merged when they are pushed.
#pragma once
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/tensor.h"

namespace ricci {

template <int N> struct Strided {
  int rank = 1;
  int64_t extent[Shape::kMaxRank] = {1};
  int64_t stride[N][Shape::kMaxRank] = {};  // in elements

  int64_t size() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= extent[d];
    return n;
  }

  // Adds an index inside the present ones.
  void push(int64_t count, const int64_t (&by)[N]) {
    if (count == 1) return;
    bool merges = true;
    for (int k = 0; k < N; ++k) merges &= extent[rank - 1] == 1 || stride[k][rank - 1] == by[k] * count;
    if (!merges) extent[rank++] = 1;
    extent[rank - 1] *= count;
    for (int k = 0; k < N; ++k) stride[k][rank - 1] = by[k];
  }

  // The offset of element i in each tensor; the last index varies fastest.
  HD void locate(int64_t i, int64_t (&offsets)[N]) const {
    for (int k = 0; k < N; ++k) offsets[k] = 0;
    for (int d = rank - 1; d > 0; --d) {
      const bool small = (i | extent[d]) >> 32 == 0;  // 64-bit division is slow on a GPU
      const int64_t outer = small ? static_cast<uint32_t>(i) / static_cast<uint32_t>(extent[d]) : i / extent[d];
      for (int k = 0; k < N; ++k) offsets[k] += (i - outer * extent[d]) * stride[k][d];
      i = outer;
    }
    for (int k = 0; k < N; ++k) offsets[k] += i * stride[k][0];
  }
};

// Calls f(j) for every j in [0, count), vectorised. Local values of f, such as a bf16, stay in registers.
template <class F> HD void for_vector(int64_t count, F f) {
#pragma omp simd
  for (int64_t j = 0; j < count; ++j) f(j);
}

// Calls run(offsets, i, count) for the stretches of the last index in [begin, end): `count` elements from element i on. In tensor k, the
// first element is at offsets[k], and the next elements follow at distances of s.stride[k][s.rank - 1].
template <int N, class Run> struct StridedLoop {
  Strided<N> s;
  Run run;

  HD void operator()(int64_t begin, int64_t end) const {
    const int last = s.rank - 1;
    int64_t index[Shape::kMaxRank] = {}, offsets[N];
    s.locate(begin, offsets);
    for (int64_t i = begin, d = last; d >= 0; i /= s.extent[d--]) index[d] = i % s.extent[d];
    while (begin < end) {
      const int64_t left = s.extent[last] - index[last], count = left < end - begin ? left : end - begin;
      run(offsets, begin, count);
      begin += count;
      // Moves to the start of the next stretch.
      int d = last;
      index[d] += count;
      for (int k = 0; k < N; ++k) offsets[k] += count * s.stride[k][d];
      for (; d > 0 && index[d] == s.extent[d]; --d) {
        index[d] = 0;
        ++index[d - 1];
        for (int k = 0; k < N; ++k) offsets[k] += s.stride[k][d - 1] - s.extent[d] * s.stride[k][d];
      }
    }
  }
};

// Runs on the CPU, in chunks of a fixed size.
template <int N, class Run> void for_strided(const Strided<N>& s, const Run& run) {
  constexpr int64_t kGrain = 16384;
  parallel_for(s.size(), kGrain, [&](int64_t begin, int64_t end) { run_vectorized(StridedLoop<N, Run>{s, run}, begin, end); });
}

// target[...] = source[...] for tensors of one dtype (any), traversed by s from the given starts, in elements: s.stride[0] is for source,
// s.stride[1] for target. Not recorded on a tape.
void copy_strided(
    const char* name, const Tensor& source, int64_t source_start, const Tensor& target, int64_t target_start, const Strided<2>& s);

}  // namespace ricci
