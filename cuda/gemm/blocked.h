// c_mn = sum_k a_mk b_kn on the CPU without a library (Goto and van de Geijn 2008; Van Zee and van de Geijn 2015). Three plain loops mostly
// wait for memory, so the work is split into parts that fit into the caches:
//   c                    is split into tasks that share nothing, for the threads
//   block of terms k     a task multiplies a few hundred terms at a time
//   block of rows of a   stays in the L2 cache while the columns of b are processed
//   panel of columns     with AVX2, part of its terms stays in the L1 cache while the rows of the block are processed; meanwhile, the next
//                        panel is prefetched
//   tile                 a few rows by a few columns, with all sums in registers (tile.h)
// Rows of a are read without packing if possible. A copy in panels (pack.h) takes up to 4% of a product's time. Rows are packed if their
// terms must be transposed or converted. With AVX2, they are also packed if they evict each other from the L1 cache (rows of 1024 f32). The
// columns of b are packed: many rows use them, and in b each term of a panel is in a different page. With AVX-512, small contiguous
// matrices are read without packing, and a tile prefetches their lines. Threads share no packed lines. Packing them twice takes less time
// than writing lines in another core's cache. The tasks depend on the number of threads, and the parts on the instruction set, but the
// terms of an element are always added in the same order.
#pragma once
#include <algorithm>
#include <array>

#include "core/cpu/parallel.h"
#include "core/memory/scratch.h"
#include "cuda/gemm/backends.h"
#include "cuda/gemm/pack.h"

namespace ricci::blocked {

constexpr int64_t kBlockBytes = 2048;              // bytes of one line in a block of k: 512 f32, 256 f64, 1024 bf16 in pairs
constexpr int64_t kBlockRows = 112;                // approximately, in a block; 224 KB with 512 f32 terms, less than half of the L2 cache
constexpr int64_t kMaxRows = 1024;                 // in a task that keeps its sums apart
constexpr int64_t kMaxColumns = 1024;              // in a task
constexpr int64_t kMinRows = 384;                  // in a task that could have fewer columns; each task packs its columns of b
constexpr int64_t kFewColumns = 256;               // with at most this number, packing rows of a takes longer than it saves
constexpr int64_t kNearBytes = 768 * 1024;         // span of an unpacked block of terms that stays in the L2 cache
constexpr int64_t kNearerBytes = 512 * 1024;       // likewise, for rows of a that many columns use
constexpr int64_t kLargeTerms = int64_t{1} << 30;  // per thread, in a product that takes more than about ten milliseconds
constexpr int64_t kTaskTerms = int64_t{1} << 21;   // approximate minimum per task if c is divided among the threads

// Computes a block of rows and columns of one matrix c.
template <class Isa, class Kind, class C> struct Task {
  using Sum = typename Kind::Sum;
  using Packed = typename Kind::Packed;
  static constexpr int kRows = Isa::kRows, kVector = Isa::kBytes / sizeof(Sum), kColumns = 2 * kVector;
  using Rows = std::conditional_t<Kind::kByTiles, TileRows<Kind>, Panels<Kind, kRows, kRows, Isa::kBytes, false>>;
  using Columns = Panels<Kind, kColumns, kVector, Isa::kBytes, true>;
  int64_t k, block_ks, piece_ks, block_rows;
  Rows a;
  Columns b;
  TileTo<Sum, C> target;  // at the task's first element

  HD void operator()(int64_t, int64_t) const {
    for (int64_t from = 0; from < k || from == 0; from += block_ks) {
      const int64_t ks = std::min(block_ks, k - from);
      b.pack(from, ks);
      for (int64_t row = 0; row < a.count; row += block_rows) {
        Rows block = a;
        block.first = a.at(row, 0);
        block.count = std::min(block_rows, a.count - row);
        block.pack(from, ks);
        const bool along_k = Kind::kByTiles || (a.in_place && a.k_stride == 1);
        along_k ? multiply<true>(block, row, from, ks) : multiply<Kind::kByTiles>(block, row, from, ks);
      }
    }
  }

 private:
  template <bool kAlongK> HD void multiply(const Rows& block, int64_t row, int64_t from, int64_t ks) const {
    for (int64_t j = 0; j < b.count; j += kColumns)
      for (int64_t skipped = 0; skipped < ks || skipped == 0; skipped += piece_ks) {
        const int64_t piece = std::min(piece_ks, ks - skipped);
        const Lines<Packed> b_lines = b.lines(j, from, ks, skipped);
        TileTo<Sum, C> tile = target;
        tile.add = target.add || from > 0;
        tile.columns = std::min<int64_t>(kColumns, b.count - j);
        tile.first_piece = skipped == 0;
        tile.last_piece = skipped + piece >= ks;
        for_panels<kRows>(block.count, [&](auto panel_rows, int64_t i) {
          tile.sums = target.sums + (row + i) * target.sum_stride + j;
          tile.c = target.c && from + block_ks >= k ? target.c + (row + i) * target.c_stride + j : nullptr;
          tile.bias = target.bias && from == 0 ? target.bias + j : nullptr;
          tile.partial = target.partial + i * kColumns;
          using Tile = MultiplyTile<Kind, panel_rows(), Isa::kBytes, kAlongK, C>;
          Isa::run(Tile{parts(piece, Kind::kTerms), block.lines(i, from, ks, skipped), b_lines, tile,
              soon(b_lines, j, from, ks, skipped, block.count, i)});
        });
      }
  }

  // The lines that the tile at row i prefetches. Unpacked columns: fetches the panel's own lines, some terms ahead. Packed columns: a part
  // of the next panel. After the last panel, the first one follows, for the next block of rows.
  HD Fetch soon(const Lines<Packed>& b_lines, int64_t j, int64_t from, int64_t ks, int64_t skipped, int64_t rows, int64_t i) const {
    constexpr int64_t kSize = sizeof(Packed);
    if (b.in_place) return {reinterpret_cast<const char*>(b_lines.first + kTermsAhead * b_lines.stride), b_lines.stride * kSize};
    const int64_t next = j + kColumns < b.count ? j + kColumns : 0, step = parts(kColumns * kSize, parts(rows, kRows));
    return {reinterpret_cast<const char*>(b.lines(next, from, ks, 0).first) + (i / kRows * ks + skipped) / Kind::kTerms * step, step};
  }
};

// The tasks of a matrix c. Rows are split first, as long as a task keeps enough rows. Rows are usually tokens, and a core's cache still
// contains its tokens from the last op.
struct Cut {
  int64_t row_parts, column_parts, rows, columns;  // rows and columns of a task

  // A small product is split into one task per thread, a large one into two per thread. Other programs can delay some threads.
  Cut(const Gemm& g, int64_t column_unit, int64_t most_rows) : row_parts(parts(g.m, most_rows)), column_parts(parts(g.n, kMaxColumns)) {
    const int64_t threads = thread_count(), terms = g.m * g.n * (g.k + 1),
                  wanted = std::min(threads == 1 || terms < kLargeTerms * threads ? threads : 2 * threads,
                      parts(std::max(terms, 16 * g.n * g.k), kTaskTerms));
    while (row_parts * column_parts < wanted) {
      const int64_t rows_of_task = g.m / row_parts;
      (rows_of_task >= 2 * kMinRows || rows_of_task > g.n / column_parts ? row_parts : column_parts) *= 2;
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
  // The number of parts, from `least` to 2 `least`, that lets the last thread finish earliest. Each part of this side is split into
  // `others` parts on the other side.
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

// The largest number of cache lines that one set has to hold for `lines` lines of `bytes` bytes, `stride` bytes apart, in an L1 cache of 32
// KB with 8 ways, the smallest of today's processors. This cache has 64 sets, so lines at multiples of 4096 bytes are all in the same set.
inline int64_t fullest_set(int64_t stride, int64_t lines, int64_t bytes) {
  std::array<int64_t, 64> used{};
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t i = line * stride / kCacheLine; i <= (line * stride + bytes - 1) / kCacheLine; ++i) ++used[static_cast<size_t>(i % 64)];
  return *std::max_element(used.begin(), used.end());
}

// Computes one matrix. The columns of c are contiguous.
template <class Isa, class Kind, class C> void multiply_one(const Gemm& g) {
  using T = typename Kind::Element;
  using Sum = typename Kind::Sum;
  using Packed = typename Kind::Packed;
  using Work = Task<Isa, Kind, C>;
  static_assert(sizeof(Packed) == sizeof(Sum));
  constexpr int64_t kUnit = 16 * Kind::kTerms, kMaxKs = kBlockBytes / sizeof(Packed) * Kind::kTerms, kSize = sizeof(T);
  const int64_t blocks = std::max<int64_t>(1, parts(g.k, kMaxKs)), block_ks = std::max(kUnit, round_up(parts(g.k, blocks), kUnit)),
                pieces = parts(block_ks, Isa::kPiece * Kind::kTerms), piece_ks = round_up(parts(block_ks, pieces), kUnit);
  // Without packing, an AVX2 tile uses less than half of a line of a, and its columns of b do not stay in the L1 cache.
  constexpr bool kNarrow = Isa::kRows * sizeof(T) <= kCacheLine / 2;
  const auto is_near = [&](int64_t k_stride, int64_t bytes) { return !kNarrow && block_ks * k_stride * kSize <= bytes; };
  const bool along_k = g.a_at.column_stride == 1, few_columns = g.n <= kFewColumns,
             spreads = fullest_set(g.a_at.row_stride * kSize, Isa::kRows, std::min(piece_ks, g.k) * kSize) <= Isa::kWays;
  const int64_t near_bytes = few_columns ? kNearBytes : kNearerBytes;
  const bool a_in_place = Kind::in_place(g.a_at.row_stride, g.a_at.column_stride, g.k) &&
                          (along_k ? spreads || few_columns : is_near(g.a_at.column_stride, near_bytes)),
             b_in_place = Kind::kTerms == 1 && g.b_at.column_stride == 1 && Kind::in_place(1, g.b_at.row_stride, g.k) &&
                          (g.m <= Isa::kRows || is_near(g.b_at.row_stride, kNearBytes));
  const bool sums_apart = !std::is_same_v<C, Sum> && g.k > block_ks;  // c cannot store the sums between blocks
  const Cut cut(g, Work::kColumns, sums_apart ? kMaxRows : g.m);
  const int64_t block_rows = round_up(parts(cut.rows, parts(cut.rows, kBlockRows)), Isa::kRows);
  // Sizes of packed a, packed b, sums, bias, partial sums.
  const int64_t a = a_in_place ? 0 : Work::Rows::size(block_rows, block_ks), b = Work::Columns::size(cut.columns, block_ks),
                sums = sums_apart ? cut.rows * cut.columns : 0, bias = g.bias_n ? cut.columns : 0,
                partial = pieces > 1 ? block_rows * Work::kColumns : 0;
  parallel_for_with_scratch(cut.tasks(), 1, [&](int64_t begin, int64_t end) {
    const Scratch<Sum> memory(a + b + sums + bias + partial);
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
      target.partial = room + a + b + sums + bias;
      const Factor<Kind> rows_of_a{static_cast<const T*>(g.a) + i * g.a_at.row_stride, g.a_at.row_stride, g.a_at.column_stride,
          std::min(cut.rows, g.m - i), a_in_place, reinterpret_cast<Packed*>(room)};
      const Factor<Kind> columns_of_b{static_cast<const T*>(g.b) + j * g.b_at.column_stride, g.b_at.column_stride, g.b_at.row_stride,
          columns, b_in_place, reinterpret_cast<Packed*>(room + a)};
      Isa::run(Work{g.k, block_ks, piece_ks, block_rows, {rows_of_a}, {columns_of_b}, target});
    }
  });
}

// Computes one matrix. If the columns of c are not contiguous, the product is computed in a dense matrix and then copied.
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

// Computes a batch. Many small matrices are distributed over the threads; large ones are computed one after another by all threads.
template <class Isa, class Kind, class C> void multiply(const Gemm& g) {
  const int64_t terms = g.m * g.n * (g.k + 1);
  const bool together = terms > kTaskTerms && g.batch < 4 * thread_count();
  if (is_dry_run()) return multiply_any<Isa, Kind, C>(g);  // counts the buffers of one matrix; all matrices share them
  parallel_for(g.batch, together ? g.batch : parts(kTaskTerms, terms), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply_any<Isa, Kind, C>(matrix_of(g, i));
  });
}

}  // namespace ricci::blocked
