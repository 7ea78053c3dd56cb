// c_mn = sum_k a_mk b_kn on the CPU without a library (Goto and van de Geijn 2008; Van Zee and van de Geijn 2015). The three plain loops
// are slow because they wait for memory. So the work is cut until the numbers in use fit into the caches:
//   c                    is cut into tasks that share nothing, for the threads
//   block of terms k     a task multiplies a few hundred terms at a time
//   strip of columns     its rows of a by one strip of columns of b after the other; the next strip is fetched meanwhile
//   tile                 a few rows by a few columns, with all sums in registers (tile.h)
// A factor is read in place if possible, because a copy in panels takes 3 to 15% of a product's time. It is packed (pack.h) if its terms
// must be transposed or converted, or if its stride puts all lines into the same few sets of the caches. A thread packs all that it needs,
// because lines in the cache of another core take longer to write than to pack twice. The tasks depend on the number of threads, but the
// terms of an element are added in the same order for any number.
#pragma once
#include <algorithm>

#include "core/cpu/parallel.h"
#include "core/memory/scratch.h"
#include "cuda/gemm/backends.h"
#include "cuda/gemm/pack.h"

namespace ricci::blocked {

constexpr int64_t kBlockBytes = 2048;              // one line in a block of k: 512 f32, 256 f64, 1024 bf16 in pairs
constexpr int64_t kStripBytes = 512;               // one row of a strip, as sums
constexpr int64_t kMaxRows = 1024;                 // in a task
constexpr int64_t kMaxColumns = 4096;              // in a task
constexpr int64_t kMinRows = 192;                  // in a task that could have fewer columns
constexpr int64_t kLargeTerms = int64_t{1} << 25;  // for each thread, of a large product
constexpr int64_t kTaskTerms = int64_t{1} << 21;   // about this many at least, before c is cut up for the threads

// Rows x columns of one matrix c, from its first to its last element.
template <class Isa, class Kind, class C> struct Task {
  using Sum = typename Kind::Sum;
  using Packed = typename Kind::Packed;
  static constexpr int kRows = Isa::kRows, kVector = Isa::kBytes / sizeof(Sum), kColumns = 2 * kVector;
  using Rows = std::conditional_t<Kind::kByTiles, TileRows<Kind>, Panels<Kind, kRows, kRows, Isa::kBytes, false>>;
  using Columns = Panels<Kind, kColumns, kVector, Isa::kBytes, true>;
  int64_t k, block_ks, strip_columns;
  Rows a;
  Columns b;
  TileTo<Sum, C> target;  // at the task's first element

  HD void operator()(int64_t, int64_t) const {
    const bool along_k = Kind::kByTiles || (a.in_place && a.k_stride == 1);
    for (int64_t from = 0; from < k || from == 0; from += block_ks) {
      const int64_t ks = std::min(block_ks, k - from);
      a.pack(from, ks);
      for (int64_t j = 0; j < b.count; j += strip_columns) {
        const Columns strip = strip_from(j);
        strip.pack(from, ks);
        along_k ? multiply<true>(strip, j, from, ks) : multiply<Kind::kByTiles>(strip, j, from, ks);
      }
    }
  }

 private:
  HD Columns strip_from(int64_t j) const {
    Columns strip = b;
    strip.first = b.at(j, 0);
    strip.count = std::min(strip_columns, b.count - j);
    return strip;
  }
  // The strip after this one: of the same terms, or the first of the next terms; nothing past the end.
  HD Ahead ahead_of(const Columns& strip, int64_t j, int64_t from, int64_t ks) const {
    if (const int64_t next = j + strip.count; next < b.count) return b.ahead(next, std::min(strip_columns, b.count - next), from, ks);
    return b.ahead(0, std::min(strip_columns, b.count), from + block_ks, std::clamp<int64_t>(k - from - block_ks, 0, block_ks));
  }

  template <bool kAlongK> HD void multiply(const Columns& strip, int64_t begin, int64_t from, int64_t ks) const {
    Ahead next = ahead_of(strip, begin, from, ks);
    const int64_t strip_panels = parts(strip.count, kColumns), at_a_time = parts(next.size(), parts(a.count, kRows) * strip_panels);
    TileTo<Sum, C> tile = target;
    tile.add = target.add || from > 0;
    for_panels<kRows>(a.count, [&](auto panel_rows, int64_t row) {
      const Lines<Packed> a_lines = a.lines(row, from, ks);
      const int64_t next_row = row + panel_rows;
      const bool first_use = a.in_place && begin == 0 && next_row < a.count;
      Ahead rows = first_use ? a.ahead(next_row, std::min<int64_t>(kRows, a.count - next_row), from, ks) : Ahead{};
      const int64_t rows_at_a_time = parts(rows.size(), strip_panels);
      for (int64_t j = 0; j < strip.count; j += kColumns) {
        next.fetch(at_a_time);
        rows.fetch(rows_at_a_time);
        tile.columns = std::min<int64_t>(kColumns, strip.count - j);
        tile.sums = target.sums + row * target.sum_stride + begin + j;
        tile.c = target.c && from + block_ks >= k ? target.c + row * target.c_stride + begin + j : nullptr;
        tile.bias = target.bias && from == 0 ? target.bias + begin + j : nullptr;
        using Tile = MultiplyTile<Kind, panel_rows(), Isa::kBytes, kAlongK, C>;
        Isa::run(Tile{parts(ks, Kind::kTerms), a_lines, strip.lines(j, from, ks), tile});
      }
    });
  }
};

// The tasks that a matrix c is cut into. Rows are cut first, while a task keeps enough of them, because rows usually are tokens, and a
// core still has the tokens of the op before in its cache. If b is packed, a task needs more rows, because every task
// packs its own columns of b.
struct Cut {
  int64_t row_parts, column_parts, rows, columns;  // rows and columns of a task

  // A small product is cut into one task per thread, a large one into two, because some threads are held up by other programs.
  Cut(const Gemm& g, int64_t column_unit, int64_t most_rows, bool packs_b)
      : row_parts(parts(g.m, most_rows)), column_parts(parts(g.n, kMaxColumns)) {
    const int64_t threads = thread_count(), terms = g.m * g.n * (g.k + 1), few_rows = packs_b ? 2 * kMinRows : kMinRows,
                  wanted = std::min(threads == 1 || terms < kLargeTerms * threads ? threads : 2 * threads,
                      parts(std::max(terms, 16 * g.n * g.k), kTaskTerms));
    while (row_parts * column_parts < wanted) {
      const int64_t rows_of_task = g.m / row_parts;
      (rows_of_task >= 2 * few_rows || rows_of_task > g.n / column_parts ? row_parts : column_parts) *= 2;
    }
    column_parts = balanced(g.n, column_parts, column_unit, row_parts);
    row_parts = balanced(g.m, row_parts, 4, column_parts);
    rows = round_up(parts(g.m, row_parts), 4);
    row_parts = parts(g.m, rows);
    columns = round_up(parts(g.n, column_parts), column_unit);
    column_parts = parts(g.n, columns);
  }
  int64_t tasks() const { return row_parts * column_parts; }

 private:
  // The number of parts, from `least` to its double, that lets the last thread finish first. Each part of this side is cut into `others`
  // on the other side.
  static int64_t balanced(int64_t extent, int64_t least, int64_t unit, int64_t others) {
    const auto longest = [&](int64_t count) {
      const int64_t size = round_up(parts(extent, count), unit);
      return parts(parts(extent, size) * others, thread_count()) * size;
    };
    int64_t best = least;
    for (int64_t count = least + 1; count <= 2 * least && least * others > 1; ++count)
      if (longest(count) < longest(best)) best = count;
    return best;
  }
};

// True if the lines of a factor drive each other out of the caches: such a stride puts them into the same few sets.
template <class T> bool collides(int64_t stride) { return stride * int64_t{sizeof(T)} % 4096 == 0; }

// One matrix; the columns of c are neighbours.
template <class Isa, class Kind, class C> void multiply_one(const Gemm& g) {
  using T = typename Kind::Element;
  using Sum = typename Kind::Sum;
  using Packed = typename Kind::Packed;
  using Work = Task<Isa, Kind, C>;
  static_assert(sizeof(Packed) == sizeof(Sum));
  constexpr int64_t kUnit = 16 * Kind::kTerms, kMaxKs = kBlockBytes / sizeof(Packed) * Kind::kTerms, kStrip = kStripBytes / sizeof(Sum);
  const int64_t blocks = std::max<int64_t>(1, parts(g.k, kMaxKs)), block_ks = std::max(kUnit, round_up(parts(g.k, blocks), kUnit));
  // If the rows of a are neighbours, a tile reads a few numbers of each term's line: too few with the narrow tile of AVX2.
  const bool narrow = Isa::kRows * sizeof(T) <= kCacheLine / 2;
  const bool a_in_place = Kind::in_place(g.a_at.row_stride, g.a_at.column_stride, g.k) &&
                          (g.a_at.column_stride == 1 || !(narrow || collides<T>(g.a_at.column_stride))),
             b_in_place = Kind::kTerms == 1 && g.b_at.column_stride == 1 && Kind::in_place(1, g.b_at.row_stride, g.k) &&
                          (g.m <= Isa::kRows || !collides<T>(g.b_at.row_stride));
  const bool sums_apart = !std::is_same_v<C, Sum> && g.k > block_ks;  // because c cannot hold them between blocks
  const Cut cut(g, Work::kColumns, a_in_place && g.a_at.column_stride == 1 && !sums_apart ? g.m : kMaxRows, !b_in_place);
  const int64_t strip = round_up(parts(cut.columns, parts(cut.columns, kStrip)), Work::kColumns);
  // Packed a, packed b, sums, bias.
  const int64_t a = a_in_place ? 0 : Work::Rows::size(cut.rows, block_ks), b = Work::Columns::size(strip, block_ks),
                sums = sums_apart ? cut.rows * cut.columns : 0, bias = g.bias_n ? cut.columns : 0;
  parallel_for_with_scratch(cut.tasks(), 1, [&](int64_t begin, int64_t end) {
    const Scratch<Sum> memory(a + b + sums + bias);
    Sum* const room = memory.data();
    for (int64_t task = begin; task < end; ++task) {
      const int64_t i = task % cut.row_parts * cut.rows, j = task / cut.row_parts * cut.columns, columns = std::min(cut.columns, g.n - j);
      TileTo<Sum, C> target{};
      C* const c = static_cast<C*>(g.c) + i * g.c_at.row_stride + j;
      if constexpr (std::is_same_v<C, Sum>) target = {.sums = c, .sum_stride = g.c_at.row_stride, .add = g.accumulate};
      else target = {.sums = room + a + b, .sum_stride = cut.columns, .c = c, .c_stride = g.c_at.row_stride, .accumulate = g.accumulate};
      if (g.bias_n) {
        std::copy_n(static_cast<const T*>(g.bias_n) + j, columns, room + a + b + sums);
        target.bias = room + a + b + sums;
      }
      const Factor<Kind> rows_of_a{static_cast<const T*>(g.a) + i * g.a_at.row_stride, g.a_at.row_stride, g.a_at.column_stride,
          std::min(cut.rows, g.m - i), a_in_place, reinterpret_cast<Packed*>(room)};
      const Factor<Kind> columns_of_b{static_cast<const T*>(g.b) + j * g.b_at.column_stride, g.b_at.column_stride, g.b_at.row_stride,
          columns, b_in_place, reinterpret_cast<Packed*>(room + a)};
      Isa::run(Work{g.k, block_ks, strip, {rows_of_a}, {columns_of_b}, target});
    }
  });
}

// One matrix. If the columns of c are not neighbours, the product is computed densely and then copied.
template <class Isa, class Kind, class C> void multiply_any(const Gemm& g) {
  using Sum = typename Kind::Sum;
  if (g.c_at.column_stride == 1) return multiply_one<Isa, Kind, C>(g);
  const Tensor sums({g.m, g.n}, dtype_of<Sum>);
  Gemm dense = g;
  dense.c = sums.raw();
  dense.c_at = {g.n, 1, 0};
  dense.accumulate = false;
  multiply_one<Isa, Kind, Sum>(dense);
  if (is_dry_run()) return;
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      C& c = static_cast<C*>(g.c)[i * g.c_at.row_stride + j * g.c_at.column_stride];
      c = static_cast<C>(sums.data<Sum>()[i * g.n + j] + (g.accumulate ? static_cast<Sum>(c) : 0));
    }
}

// A batch: many small matrices are spread over the threads; large ones are computed one after the other by all threads.
template <class Isa, class Kind, class C> void multiply(const Gemm& g) {
  const int64_t terms = g.m * g.n * (g.k + 1);
  const bool together = terms > kTaskTerms && g.batch < 4 * thread_count();
  if (is_dry_run()) return multiply_any<Isa, Kind, C>(g);  // counts the buffers of one matrix, because the next matrices use them again
  parallel_for(g.batch, together ? g.batch : parts(kTaskTerms, terms), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply_any<Isa, Kind, C>(matrix_of(g, i));
  });
}

}  // namespace ricci::blocked
