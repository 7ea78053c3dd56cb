// For row programs that access packs of 16 bytes, the fastest access on a GPU. row.each_piece(f, x, y, ...) calls f(piece) for contiguous
// elements of the rows at x, y, ... A piece has 16 bytes of the narrowest type of these rows.
//
//   row.each_piece([&](auto piece) { piece.store(y, factor * piece.load(x) + piece.load(bias)); }, x, bias, y);
//
// One formula serves a pack and a single element. piece.load(x) is a number of the type of the computation (f32 for bf16), or Lanes of it:
// one number for each element, with the usual arithmetic. map(f, a, b, ...) applies any other function of numbers. piece.read and
// piece.write leave the type as it is. piece.write_mixed<k> writes k interleaved rows: y[i k + q] is element i of row q. On the CPU, f is
// called with single elements; the compiler combines these into vectors.
#pragma once
#include <type_traits>

#include "cuda/ptx.h"
#include "cuda/verbs/rows.h"

namespace ricci {

template <class A, int kCount> struct Lanes {
  alignas(16) A v[kCount];
  __device__ static Lanes filled(A value) {
    Lanes all;
    UNROLL(8)
    for (int i = 0; i < kCount; ++i) all.v[i] = value;
    return all;
  }
};

// The number in lane i. A single number is the same in every lane.
template <class A, int kCount> __device__ inline A lane_of(const Lanes<A, kCount>& a, int i) { return a.v[i]; }
template <class A> HD A lane_of(A a, int) { return a; }

template <class A, int kCount, class F, class... Rest> __device__ inline auto map(F f, const Lanes<A, kCount>& a, const Rest&... rest) {
  Lanes<decltype(f(a.v[0], lane_of(rest, 0)...)), kCount> y;
  UNROLL(8)
  for (int i = 0; i < kCount; ++i) y.v[i] = f(a.v[i], lane_of(rest, i)...);
  return y;
}
template <class A, class F, class... Rest>
requires(std::is_arithmetic_v<A> || std::is_same_v<A, bf16>) HD auto map(F f, A a, Rest... rest) { return f(a, rest...); }

#define RICCI_LANES(op)                                                                                             \
  template <class A, int n> __device__ inline Lanes<A, n> operator op(const Lanes<A, n>& a, const Lanes<A, n>& b) { \
    return map([](A x, A y) { return x op y; }, a, b);                                                              \
  }                                                                                                                 \
  template <class A, int n> __device__ inline Lanes<A, n> operator op(const Lanes<A, n>& a, A b) {                  \
    return map([](A x, A y) { return x op y; }, a, b);                                                              \
  }                                                                                                                 \
  template <class A, int n> __device__ inline Lanes<A, n> operator op(A a, const Lanes<A, n>& b) {                  \
    return map([](A y, A x) { return x op y; }, b, a);                                                              \
  }
RICCI_LANES(+)
RICCI_LANES(-)
RICCI_LANES(*)
RICCI_LANES(/)
#undef RICCI_LANES

// Element i of a row.
struct One {
  int64_t i;
  template <class T> HD T read(const T* x) const { return x[i]; }
  template <class T> HD void write(T* y, T value) const { y[i] = value; }
  template <int k, class T> HD void write_mixed(T* y, const T (&row)[k]) const {
    for (int q = 0; q < k; ++q) y[i * k + q] = row[q];
  }
  template <class T> HD Accumulator<T> load(const T* x) const { return Accumulator<T>(x[i]); }
  template <class T, class A> HD void store(T* y, A value) const { y[i] = T(value); }
  template <class T> HD void copy(T* y, const T* x) const { y[i] = x[i]; }
  template <class A> HD A all(A value) const { return value; }
  HD int64_t index() const { return i; }
  HD One from(int64_t begin) const { return {begin + i}; }
};

// The elements i .. i + kCount - 1 of a row. They begin at a multiple of 16 bytes in each row.
template <int kCount> struct Piece {
  int64_t i;

  template <class T> __device__ Lanes<T, kCount> read(const T* x) const {
    Lanes<T, kCount> words;
    UNROLL(8)
    for (int w = 0; w < bytes<T>() / 16; ++w) {
      const uint4 word = ptx::load16(reinterpret_cast<const char*>(x + i) + 16 * w);
      __builtin_memcpy(reinterpret_cast<char*>(words.v) + 16 * w, &word, 16);
    }
    return words;
  }
  template <class T> __device__ void write(T* y, const Lanes<T, kCount>& words) const {
    UNROLL(8)
    for (int w = 0; w < bytes<T>() / 16; ++w) {
      uint4 word;
      __builtin_memcpy(&word, reinterpret_cast<const char*>(words.v) + 16 * w, 16);
      ptx::store16(reinterpret_cast<char*>(y + i) + 16 * w, word);
    }
  }
  template <int k, class T> __device__ void write_mixed(T* y, const Lanes<T, kCount> (&row)[k]) const {
    UNROLL(8)
    for (int p = 0; p < k; ++p) {
      Lanes<T, kCount> piece;
      UNROLL(8)
      for (int e = 0; e < kCount; ++e) piece.v[e] = row[(p * kCount + e) % k].v[(p * kCount + e) / k];
      Piece{i * k + p * kCount}.write(y, piece);
    }
  }
  template <class T> __device__ Lanes<Accumulator<T>, kCount> load(const T* x) const {
    return map([](T word) { return Accumulator<T>(word); }, read(x));
  }
  template <class T, class A> __device__ void store(T* y, const Lanes<A, kCount>& values) const {
    write(y, map([](A value) { return T(value); }, values));
  }
  template <class T> __device__ void copy(T* y, const T* x) const { write(y, read(x)); }
  template <class A> __device__ Lanes<A, kCount> all(A value) const { return Lanes<A, kCount>::filled(value); }
  __device__ Lanes<int64_t, kCount> index() const {
    Lanes<int64_t, kCount> indices;
    UNROLL(8)
    for (int k = 0; k < kCount; ++k) indices.v[k] = i + k;
    return indices;
  }
  __device__ Piece from(int64_t begin) const { return {begin + i}; }  // for rows that begin `begin` elements later, a multiple of kCount

 private:
  template <class T> HD static constexpr int bytes() { return kCount * static_cast<int>(sizeof(T)); }
};

// The number of elements of the narrowest type in 16 bytes; 1 if no type is given.
template <class... Ts> HD constexpr int elements_of_piece() {
  int most = 1;
  ((most = 16 / static_cast<int>(sizeof(Ts)) > most ? 16 / static_cast<int>(sizeof(Ts)) : most), ...);
  return most;
}
template <class... Ts> HD bool on_16_bytes(const Ts*... pointers) { return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...); }

// On the GPU, single elements are also used if a row does not begin or end at a multiple of 16 bytes.
template <class F, class... Ts> __device__ void BlockRow::each_piece(F f, const Ts*... rows) const {
  constexpr int kCount = elements_of_piece<Ts...>();
  if (n % kCount == 0 && on_16_bytes(rows...))
    for (int64_t i = int64_t{threadIdx.x} * kCount; i < n; i += int64_t{blockDim.x} * kCount) f(Piece<kCount>{i});
  else
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) f(One{i});
  __syncthreads();
}
#ifndef __CUDACC__
template <class F, class... Ts> HD void LoopRow::each_piece(F f, const Ts*...) const {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) f(One{i});
}
#endif

// If n is one of the constants kSome, calls f<n>(); else returns false. Used for arrays in registers, with a constant size.
template <int... kSome, class F> HD bool with_constant(int64_t n, F f) {
  return ((n == kSome && (f.template operator()<kSome>(), true)) || ...);
}
// y[i count + q] = x[q step + i] for `count` rows q of x; a missing row is treated as zeros.
template <class Row, class T, class Exists> HD void interleave(Row row, const T* x, int64_t step, T* y, int64_t count, Exists exists) {
  const auto by_pieces = [&]<int kCount>() {
    row.each_piece(
        [&](auto piece) {
          decltype(piece.read(x)) of_row[kCount];
          UNROLL(8)
          for (int q = 0; q < kCount; ++q) of_row[q] = exists(q) ? piece.read(x + q * step) : piece.all(T(0));
          piece.template write_mixed<kCount>(y, of_row);
        },
        x, y);
  };
  if (with_constant<2, 4, 8>(count, by_pieces)) return;
  row.each([&](int64_t i) {
    for (int64_t q = 0; q < count; ++q) y[i * count + q] = exists(q) ? x[q * step + i] : T(0);
  });
}

}  // namespace ricci
