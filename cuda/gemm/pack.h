// Copies lines of a matrix into panels, in the order in which the inner loop of the blocked product reads them: the terms k
// one after the other, and for each term the lines of the panel. Rows of a and columns of b are lines alike.
#pragma once
#include <utility>

#include "cuda/gemm/tile.h"

namespace ricci {

constexpr int kAhead = 8;  // terms that are fetched ahead where a line's terms are apart

// N lines of N words of 4 bytes, one vector for each line, are transposed in registers.
template <int N> struct Words {
  typedef uint32_t Vec __attribute__((vector_size(4 * N), aligned(kAlignedValues ? 4 * N : 2), may_alias));
  typedef uint32_t Stored __attribute__((vector_size(4 * N), aligned(2), may_alias));

  // Two stages within groups of 4 words, which vectors do fastest, the others between groups.
  static HD void transpose(Vec (&row)[N]) {
    constexpr auto all = std::make_index_sequence<N>();
    constexpr auto low = [](int j) { return j / 4 * 4 + j % 4 / 2 + j % 2 * N; };               // 0 N 1 N+1 of every group
    constexpr auto low_pairs = [](int j) { return j / 4 * 4 + j % 2 + j % 4 / 2 * N; };         // 0 1 N N+1
    constexpr auto even = [](int j) { return j / 4 % (N / 8) * 8 + j % 4 + j / (N / 2) * N; };  // the even groups of both
    shuffle<1, 2>(row, low, all);
    shuffle<2, 2>(row, low_pairs, all);
    if constexpr (N >= 8) shuffle<4, 4>(row, even, all);
    if constexpr (N >= 16) shuffle<8, 4>(row, even, all);
  }

  // The row in which transpose() leaves column j.
  static constexpr int row_of_column(int j) { return j % 2 * 2 + j / 2 % 2 + j / 4 * 4; }

 private:
  // Two rows that are `Distance` apart become two others: one has the words low(j) of both (the second row's words are N ..), the other the
  // words that are `Offset` further.
  template <int Distance, int Offset, class Low, size_t... J> static HD void shuffle(Vec (&row)[N], Low low, std::index_sequence<J...>) {
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i)
      if (!(i & Distance)) {
        const Vec a = row[i], b = row[i + Distance];
        row[i] = __builtin_shufflevector(a, b, low(int{J})...);
        row[i + Distance] = __builtin_shufflevector(a, b, (low(int{J}) + Offset)...);
      }
  }
};

// `Lines` lines whose terms are packed `Stride` apart. `from` is term 0 of the first of `lines` lines; what is missing is
// zero. Vectors have `Bytes`.
template <class Kind, int Lines, int Stride, int Bytes> struct Pack {
  using T = typename Kind::Element;
  using Packed = typename Kind::Packed;
  static constexpr int kWide = Lines > 8 ? 16 : Lines, kTransposed = Bytes / 4;
  using Vec = typename Words<kTransposed>::Vec;
  using Stored = typename Words<kTransposed>::Stored;
  const T* from;
  int64_t line_stride, k_stride, lines;

  // The terms [begin, end) of ks. `begin` is a multiple of kTerms; end too, unless it is ks.
  HD void operator()(int64_t begin, int64_t end, int64_t ks, Packed* panel) const {
    if (k_stride == 1 && lines >= Lines) return along_k(begin, end, panel);
    if (line_stride == 1 && lines >= kWide) return along_lines(begin, end, ks, panel);
    for (int64_t k = begin; k < end; k += Kind::kTerms, panel += Stride) some(k, end, panel);
  }

 private:
  HD void some(int64_t k, int64_t end, Packed* panel) const {
    const T* terms = from + k * k_stride;
    for (int i = 0; i < Lines; ++i) panel[i] = i < lines ? Kind::load(terms + i * line_stride, k_stride, end - k) : Packed(0);
  }

  // A few lines too many, which the next term overwrites.
  HD void along_lines(int64_t k, int64_t end, int64_t ks, Packed* panel) const {
    const int64_t last = kWide > Lines || ks % Kind::kTerms ? ks - Kind::kTerms : ks;
    for (; k < (end < last ? end : last); k += Kind::kTerms, panel += Stride) {
      __builtin_prefetch(from + (k + kAhead) * k_stride);
#pragma omp simd
      for (int i = 0; i < kWide; ++i) panel[i] = Kind::load(from + k * k_stride + i, k_stride, Kind::kTerms);
    }
    for (; k < end; k += Kind::kTerms, panel += Stride) some(k, end, panel);
  }

  HD void along_k(int64_t k, int64_t end, Packed* panel) const {
    if constexpr (sizeof(Packed) == 4 && Lines >= kTransposed / 2 && Lines <= kTransposed) {
      constexpr int kStep = kTransposed * Kind::kTerms;
      for (; k + kStep <= end; k += kStep, panel += kTransposed * Stride) transposed(k, panel);
    }
    for (; k < end; k += Kind::kTerms, panel += Stride) some(k, end, panel);
  }

  static HD void load(const T* line, Vec& words) {
    if constexpr (sizeof(Packed) == Kind::kTerms * sizeof(T)) {
      words = *reinterpret_cast<const Stored*>(line);
    } else {
      Packed terms[kTransposed];
#pragma omp simd
      for (int k = 0; k < kTransposed; ++k) terms[k] = Kind::load(line + k, 1, 1);
      std::memcpy(&words, terms, sizeof words);
    }
  }

  // Where Lines is less than kTransposed, each term overwrites what was too much of the one before.
  HD void transposed(int64_t k, Packed* panel) const {
    Vec row[kTransposed];
#pragma GCC unroll 16
    for (int i = 0; i < kTransposed; ++i) load(from + (i < Lines ? i : 0) * line_stride + k, row[i]);
    Words<kTransposed>::transpose(row);
#pragma GCC unroll 16
    for (int j = 0; j < kTransposed - 1; ++j) *reinterpret_cast<Stored*>(panel + j * Stride) = row[Words<kTransposed>::row_of_column(j)];
    std::memcpy(panel + (kTransposed - 1) * Stride, &row[Words<kTransposed>::row_of_column(kTransposed - 1)], Lines * sizeof(Packed));
  }
};

}  // namespace ricci
