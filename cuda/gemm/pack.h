// Copies lines of a matrix into panels. The inner loop of the blocked product then reads memory from front to back: the terms k one after
// another, and for each term the lines of the panel. A line is a row of a or a column of b.
#pragma once
#include <algorithm>
#include <utility>

#include "cuda/gemm/tile.h"

namespace ricci {

// Terms of a panel that are packed before the next panel, if a line's terms are not contiguous. Meanwhile, the next terms are prefetched.
constexpr int64_t kStretch = 16;
constexpr int64_t kPad = 16;  // elements between panels; panels at multiples of 4096 bytes would compete for few cache lines
constexpr int64_t kCacheLine = 64;

constexpr int64_t parts(int64_t n, int64_t most) { return (n + most - 1) / most; }
constexpr int64_t round_up(int64_t n, int64_t unit) { return parts(n, unit) * unit; }

// Transposes N lines of N words of 4 bytes in registers, one vector for each line.
template <int N> struct Words {
  typedef uint32_t Vec __attribute__((vector_size(4 * N), aligned(kAlignedValues ? 4 * N : 2), may_alias));
  typedef uint32_t Stored __attribute__((vector_size(4 * N), aligned(2), may_alias));

  // Two stages use the fastest shuffles, within groups of 4 words; the other stages work between groups.
  static HD void transpose(Vec (&row)[N]) {
    constexpr auto all = std::make_index_sequence<N>();
    constexpr auto low = [](int j) { return j / 4 * 4 + j % 4 / 2 + j % 2 * N; };                         // 0 N 1 N+1 of every group
    constexpr auto low_pairs = [](int j) { return j / 4 * 4 + j % 2 + j % 4 / 2 * N; };                   // 0 1 N N+1
    constexpr auto even = [](int j) { return j / 4 % (N / 8 + (N < 8)) * 8 + j % 4 + j / (N / 2) * N; };  // the even groups of both
    shuffle<1, 2>(row, low, all);
    shuffle<2, 2>(row, low_pairs, all);
    if constexpr (N >= 8) shuffle<4, 4>(row, even, all);
    if constexpr (N >= 16) shuffle<8, 4>(row, even, all);
  }

  // The row that holds column j after transpose().
  static constexpr int row_of_column(int j) { return j % 2 * 2 + j / 2 % 2 + j / 4 * 4; }

 private:
  // Replaces each pair of rows that are `Distance` apart: one gets the words low(j) of both (the second row's words are N ..), the other
  // the words low(j) + `Offset`.
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

// Packs `Lines` lines with their terms `Stride` apart. `from` is term 0 of the first of `lines` lines; missing lines are zeros. Vectors
// have `Bytes` bytes.
template <class Kind, int Lines, int Stride, int Bytes> struct Pack {
  using T = typename Kind::Element;
  using Packed = typename Kind::Packed;
  static constexpr int kWide = Lines > 8 ? 16 : Lines, kTransposed = Bytes / 4;
  using Vec = typename Words<kTransposed>::Vec;
  using Stored = typename Words<kTransposed>::Stored;
  const T* from;
  int64_t line_stride, k_stride, lines;

  // Packs the terms [begin, end) of ks. `begin` is a multiple of kTerms; so is `end`, unless it is ks.
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

  // Writes up to kWide lines. The next term overwrites the surplus.
  HD void along_lines(int64_t k, int64_t end, int64_t ks, Packed* panel) const {
    const int64_t last = kWide > Lines || ks % Kind::kTerms ? ks - Kind::kTerms : ks;
    for (; k < (end < last ? end : last); k += Kind::kTerms, panel += Stride) {
      for (int term = 0; term < Kind::kTerms; ++term) __builtin_prefetch(from + (k + term + kStretch) * k_stride);
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

  // If Lines is less than kTransposed, each term overwrites the surplus of the term before.
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

// One factor of a product: `count` lines, the rows of a or the columns of b. Tiles read the matrix or packed panels.
template <class Kind> struct Factor {
  using T = typename Kind::Element;
  using Packed = typename Kind::Packed;
  const T* first;
  int64_t line_stride, k_stride, count;
  bool in_place;
  Packed* packed;

  static HD int64_t words(int64_t ks) { return round_up(parts(ks, Kind::kTerms), Kind::kUnit); }
  // The address of term `from` of this line.
  HD const T* at(int64_t line, int64_t from) const { return first + line * line_stride + from * k_stride; }
  HD Lines<Packed> place(int64_t line, int64_t from) const {
    return {reinterpret_cast<const Packed*>(at(line, from)), k_stride == 1 ? line_stride / Kind::kTerms : k_stride};
  }
};

// A factor in panels of kPanel lines. A panel holds the first term of all its lines, then the second one, and so on. kGroup lines are
// packed at a time. With kOnlyWhole, a last panel with fewer lines is packed even if the others are not. Without packing, its tile would
// read past the end of the matrix.
template <class Kind, int kPanel, int kGroup, int kBytes, bool kOnlyWhole> struct Panels : Factor<Kind> {
  using typename Factor<Kind>::Packed;
  using Factor<Kind>::words;

  static int64_t size(int64_t lines, int64_t ks) { return parts(lines, kPanel) * (kPanel * words(ks) + kPad); }
  HD Packed* panel(int64_t line, int64_t ks) const { return this->packed + line / kPanel * (kPanel * words(ks) + kPad) + line % kPanel; }
  // The ks terms from `from` on, except for the first `skipped` terms.
  HD Lines<Packed> lines(int64_t line, int64_t from, int64_t ks, int64_t skipped) const {
    if (this->in_place && (!kOnlyWhole || line + kPanel <= this->count)) return this->place(line, from + skipped);
    return {panel(line, ks) + skipped / Kind::kTerms * kPanel, kPanel};
  }
  HD void pack(int64_t from, int64_t ks) const {
    const int64_t read_in_place = kOnlyWhole ? this->count / kPanel * kPanel : this->count, begin = this->in_place ? read_in_place : 0;
    const int64_t step = this->k_stride == 1 ? ks : kStretch, end = round_up(this->count, kPanel);
    for (int64_t k = 0; k < ks && begin < this->count; k += step)
      for (int64_t line = begin; line < end; line += kGroup) {
        const Pack<Kind, kGroup, kPanel, kBytes> pack{this->at(line, from), this->line_stride, this->k_stride, this->count - line};
        pack(k, std::min(k + step, ks), ks, panel(line, ks) + k / Kind::kTerms * kPanel);
      }
    for (int64_t line = begin; line < end && words(ks) * Kind::kTerms > ks; line += kPanel)
      std::fill(panel(line, ks) + parts(ks, Kind::kTerms) * kPanel, panel(line, ks) + words(ks) * kPanel, Packed(0));
  }
};

// Rows of a for tiles: the terms of a row are contiguous.
template <class Kind> struct TileRows : Factor<Kind> {
  using typename Factor<Kind>::Packed;
  using Factor<Kind>::words;
  using Vectors = Words<Kind::kUnit>;
  static constexpr int kUnit = Kind::kUnit;

  static HD int64_t stride(int64_t ks) { return words(ks) + kPad; }
  static int64_t size(int64_t lines, int64_t ks) { return round_up(lines, kUnit) * stride(ks); }
  HD Lines<Packed> lines(int64_t line, int64_t from, int64_t ks, int64_t skipped) const {
    if (this->in_place) return this->place(line, from + skipped);
    return {this->packed + line * stride(ks) + skipped / Kind::kTerms, stride(ks)};
  }
  HD void pack(int64_t from, int64_t ks) const {
    for (int64_t line = 0; line < this->count && !this->in_place; line += kUnit)
      for (int64_t word = 0; word < words(ks); word += kUnit) {
        const Pack<Kind, kUnit, kUnit, 64> pack{this->at(line, from), this->line_stride, this->k_stride, this->count - line};
        Packed block[kUnit * kUnit] = {};  // transposed word by word
        const int64_t k = word * Kind::kTerms;
        pack(k, std::min<int64_t>(k + kUnit * Kind::kTerms, ks), ks, block);
        typename Vectors::Vec row[kUnit];
        std::memcpy(row, block, sizeof block);
        Vectors::transpose(row);
        Packed* const target = this->packed + line * stride(ks) + word;
#pragma GCC unroll 16
        for (int i = 0; i < kUnit; ++i) std::memcpy(target + i * stride(ks), &row[Vectors::row_of_column(i)], sizeof row[i]);
      }
  }
};

}  // namespace ricci
