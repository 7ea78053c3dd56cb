// c_mn = sum_k a_mk b_kn on the CPU without a library (Goto and van de Geijn 2008; Van Zee and van de Geijn 2015). c is cut
// into tasks that share nothing. For a block of terms k at a time, a task multiplies its rows of a by one strip of columns of b after the
// other, tile by tile; meanwhile the next strip is fetched. A factor is read where it is if a tile can: a copy in panels takes 3 to 15% of
// a product's time. It is packed if its terms must be transposed or converted, or if its stride puts all lines into the same few sets of
// the caches. A thread packs all that it needs: lines that another core has in its cache take longer to write than to pack twice.
// The cuts of c follow the number of threads; the order in which an element is summed does not.
#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/memory/scratch.h"
#include "cuda/gemm/backends.h"
#include "cuda/gemm/pack.h"
#include "cuda/gemm/pairs.h"

namespace ricci {
namespace {

constexpr int64_t kBlockBytes = 2048;              // one line in a block of k: 512 f32, 256 f64, 1024 bf16 in pairs
constexpr int64_t kStripBytes = 256;               // one row of a strip, as sums
constexpr int64_t kMaxRows = 1024;                 // in a task
constexpr int64_t kMaxColumns = 4096;              // in a task
constexpr int64_t kMinRows = 192;                  // in a task that could have fewer columns
constexpr int64_t kLargeTerms = int64_t{1} << 25;  // for each thread, of a large product
constexpr int64_t kTaskTerms = int64_t{1} << 21;   // about this many at least, before c is cut up for the threads
constexpr int64_t kCacheLine = 64;
constexpr int64_t kPad = 16;      // elements between panels: at multiples of 4096 bytes they would share few lines of a cache
constexpr int64_t kStretch = 16;  // terms of one panel, where lines are together, before the next panel's

constexpr int64_t parts(int64_t n, int64_t most) { return (n + most - 1) / most; }
constexpr int64_t round_up(int64_t n, int64_t unit) { return parts(n, unit) * unit; }

// The instruction sets, and the tile that fills the registers of each.
#if defined(__x86_64__)
struct Avx512 {
  static constexpr int kRows = 14, kBytes = 64;
  template <class Body> static void run(const Body& body) { run_avx512(body, 0, 1); }
};
struct Avx512Bf16 : Avx512 {
  template <class Body> static void run(const Body& body) { run_avx512_bf16(body, 0, 1); }
};
struct Avx2 {
  static constexpr int kRows = 6, kBytes = 32;
  template <class Body> static void run(const Body& body) { run_avx2(body, 0, 1); }
};
#endif
struct Baseline {
  static constexpr int kRows = 6, kBytes = 16;
  template <class Body> static void run(const Body& body) { run_baseline(body, 0, 1); }
};

// Stretches of memory that will be needed soon, fetched into the second cache a few cache lines at a time.
struct Ahead {
  const char* line = nullptr;
  int64_t stride = 0, lines = 0, bytes = 0, offset = 0;

  HD int64_t size() const { return lines * parts(bytes, kCacheLine); }
  HD void fetch(int64_t count) {
    for (; count > 0 && lines > 0; --count) {
      __builtin_prefetch(line + offset, 0, 2);
      if ((offset += kCacheLine) < bytes) continue;
      offset = 0;
      line += stride;
      --lines;
    }
  }
};

// Rows x columns of one matrix c, from its first to its last element.
template <class Isa, class Kind, class C> struct Task {
  using T = typename Kind::Element;
  using Sum = typename Kind::Sum;
  using Packed = typename Kind::Packed;
  static constexpr int kRows = Isa::kRows, kVector = Isa::kBytes / sizeof(Sum), kColumns = 2 * kVector;
  int64_t rows, columns, k, block_ks, strip_columns;
  const T *a, *b;
  MatrixAt a_at, b_at;
  bool a_in_place, b_in_place;
  Packed *packed_a, *packed_b;
  TileTo<Sum, C> target;  // at the task's first element

  static int64_t packed_a_size(int64_t rows, int64_t ks) { return round_up(rows * (ks / Kind::kTerms), kPad) + (rows / kRows + 1) * kPad; }
  static int64_t packed_b_size(int64_t columns, int64_t ks) { return columns / kColumns * (kColumns * (ks / Kind::kTerms) + kPad); }

  HD void operator()(int64_t, int64_t) const {
    for (int64_t from = 0; from < k || from == 0; from += block_ks) {
      const int64_t ks = std::min(block_ks, k - from);
      if (!a_in_place) pack_rows(from, ks);
      for (int64_t j = 0; j < columns; j += strip_columns) {
        const int64_t strip = std::min(strip_columns, columns - j);
        pack_columns(j, strip, from, ks);
        const Ahead next = j + strip < columns ? ahead(j + strip, from) : ahead(0, from + block_ks);
        a_in_place&& a_at.column_stride == 1 ? multiply<true>(j, strip, from, ks, next) : multiply<false>(j, strip, from, ks, next);
      }
    }
  }

 private:
  // The places of the packed panels: of a from this row on, and of b from this column of the strip on.
  HD Packed* panel_of_row(int64_t row, int64_t ks) const { return packed_a + row * parts(ks, Kind::kTerms) + row / kRows * kPad; }
  HD Packed* panel_of_column(int64_t j, int64_t ks) const { return packed_b + j / kColumns * (kColumns * parts(ks, Kind::kTerms) + kPad); }

  // The terms from `from` on, of panel_rows rows from `row` on, and of the columns from `begin` + j on.
  HD Lines<Packed> lines_of_rows(int64_t row, int64_t panel_rows, int64_t from, int64_t ks) const {
    if (!a_in_place) return {panel_of_row(row, ks), panel_rows};
    const int64_t stride = a_at.column_stride == 1 ? a_at.row_stride / Kind::kTerms : a_at.column_stride;
    return {reinterpret_cast<const Packed*>(a + row * a_at.row_stride + from * a_at.column_stride), stride};
  }
  HD Lines<Packed> lines_of_columns(int64_t begin, int64_t j, int64_t strip, int64_t from, int64_t ks) const {
    if (!b_in_place || j + kColumns > strip) return {panel_of_column(j, ks), kColumns};
    return {reinterpret_cast<const Packed*>(b + from * b_at.row_stride + begin + j), b_at.row_stride};
  }

  static HD int64_t stretch(int64_t k_stride, int64_t ks) { return k_stride == 1 ? ks : kStretch; }

  HD void pack_rows(int64_t from, int64_t ks) const {
    const int64_t step = stretch(a_at.column_stride, ks);
    for (int64_t first = 0; first < ks; first += step)
      for_panels<kRows>(rows, [&](auto lines, int64_t row) {
        const T* const line = a + row * a_at.row_stride + from * a_at.column_stride;
        const Pack<Kind, lines(), lines(), Isa::kBytes> pack{line, a_at.row_stride, a_at.column_stride, rows - row};
        pack(first, std::min(first + step, ks), ks, panel_of_row(row, ks) + first / Kind::kTerms * lines());
      });
  }

  // All columns of a strip, or, if they are read in place, those of a panel that is not whole.
  HD void pack_columns(int64_t begin, int64_t strip, int64_t from, int64_t ks) const {
    const int64_t step = stretch(b_at.row_stride, ks), packed_from = b_in_place ? strip / kColumns * kColumns : 0;
    for (int64_t first = 0; first < ks && packed_from < strip; first += step)
      for (int64_t j = packed_from; j < round_up(strip, kColumns); j += kVector) {
        const T* const line = b + from * b_at.row_stride + (begin + j) * b_at.column_stride;
        const Pack<Kind, kVector, kColumns, Isa::kBytes> pack{line, b_at.column_stride, b_at.row_stride, strip - j};
        pack(first, std::min(first + step, ks), ks, panel_of_column(j, ks) + j % kColumns + first / Kind::kTerms * kColumns);
      }
  }

  // The strip of b from column j on, terms from `from` on; nothing past the end.
  HD Ahead ahead(int64_t j, int64_t from) const {
    const int64_t ks = std::max<int64_t>(0, std::min(block_ks, k - from)), strip = std::min(strip_columns, columns - j), size = sizeof(T);
    const char* const first = reinterpret_cast<const char*>(b + from * b_at.row_stride + j * b_at.column_stride);
    if (b_at.row_stride == 1) return {first, b_at.column_stride * size, strip, ks * size};
    return {first, b_at.row_stride * size, ks, strip * b_at.column_stride * size};
  }

  // The rows of the panel from this row on, if they are read in place.
  HD Ahead ahead_rows(int64_t row, int64_t from, int64_t ks) const {
    const int64_t panel = std::min<int64_t>(kRows, rows - row), size = sizeof(T);
    if (!a_in_place || panel <= 0) return {};
    const char* const first = reinterpret_cast<const char*>(a + row * a_at.row_stride + from * a_at.column_stride);
    if (a_at.column_stride == 1) return {first, a_at.row_stride * size, panel, ks * size};
    return {first, a_at.column_stride * size, ks, panel * size};
  }

  template <bool kAlongK> HD void multiply(int64_t begin, int64_t strip, int64_t from, int64_t ks, Ahead next) const {
    const int64_t at_a_time = parts(next.size(), parts(rows, kRows) * parts(strip, kColumns));
    TileTo<Sum, C> tile = target;
    tile.add = target.add || from > 0;
    for_panels<kRows>(rows, [&](auto panel_rows, int64_t row) {
      const Lines<Packed> a_lines = lines_of_rows(row, panel_rows, from, ks);
      Ahead next_rows = begin == 0 ? ahead_rows(row + panel_rows, from, ks) : Ahead{};
      const int64_t rows_at_a_time = parts(next_rows.size(), parts(strip, kColumns));
      for (int64_t j = 0; j < strip; j += kColumns) {
        next.fetch(at_a_time);
        next_rows.fetch(rows_at_a_time);
        tile.columns = std::min<int64_t>(kColumns, strip - j);
        tile.sums = target.sums + row * target.sum_stride + begin + j;
        tile.c = target.c && from + block_ks >= k ? target.c + row * target.c_stride + begin + j : nullptr;
        tile.bias = target.bias && from == 0 ? target.bias + begin + j : nullptr;
        using Tile = MultiplyTile<Kind, panel_rows(), Isa::kBytes, kAlongK, C>;
        Isa::run(Tile{parts(ks, Kind::kTerms), a_lines, lines_of_columns(begin, j, strip, from, ks), tile});
      }
    });
  }
};

// The tasks that a matrix c is cut into. Rows are cut first, while a task keeps enough of them: they are tokens as a rule, and a core has
// those in its cache that it made in the op before. Each task packs its columns of b again: then it needs more rows.
struct Cut {
  int64_t row_parts, column_parts, rows, columns;  // rows and columns of a task

  // A small product is cut once for each thread; a large one twice, for threads that are held up.
  Cut(const Gemm& g, int64_t column_unit, int64_t most_rows, bool packs_b)
      : row_parts(parts(g.m, most_rows)), column_parts(parts(g.n, kMaxColumns)) {
    const int64_t threads = thread_count(), terms = g.m * g.n * (g.k + 1), few_rows = packs_b ? 2 * kMinRows : kMinRows,
                  wanted = std::min(threads == 1 || terms < kLargeTerms * threads ? threads : 2 * threads, parts(terms, kTaskTerms));
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
  // The number of parts, from `least` to twice as many, with which the last thread is done first. Each part of this side is cut into
  // `others` on the other side.
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

// True where the lines of a factor drive each other out of the caches: a stride of this many bytes puts them into the same few sets.
template <class T> bool collides(int64_t stride) { return stride * int64_t{sizeof(T)} % 4096 == 0; }

// One matrix; the columns of c are neighbours.
template <class Isa, class Kind, class C> void multiply_one(const Gemm& g) {
  using T = typename Kind::Element;
  using Sum = typename Kind::Sum;
  using Packed = typename Kind::Packed;
  using Work = Task<Isa, Kind, C>;
  static_assert(sizeof(Packed) == sizeof(Sum));
  constexpr int64_t kMaxKs = kBlockBytes / sizeof(Packed) * Kind::kTerms, kStrip = kStripBytes / sizeof(Sum);
  const int64_t blocks = std::max<int64_t>(1, parts(g.k, kMaxKs)), block_ks = std::max<int64_t>(16, round_up(parts(g.k, blocks), 16));
  // If the rows of a are neighbours, a tile reads a few numbers of each term's line: too few with the narrow tile of AVX2.
  const bool narrow = Isa::kRows * sizeof(T) <= kCacheLine / 2;
  const bool a_in_place = Kind::in_place(g.a_at.row_stride, g.a_at.column_stride, g.k) &&
                          (g.a_at.column_stride == 1 || !(narrow || collides<T>(g.a_at.column_stride))),
             b_in_place = Kind::kTerms == 1 && g.b_at.column_stride == 1 && Kind::in_place(1, g.b_at.row_stride, g.k) &&
                          !collides<T>(g.b_at.row_stride);
  const bool sums_apart = !std::is_same_v<C, Sum> && g.k > block_ks;  // c cannot hold them between blocks
  const Cut cut(g, Work::kColumns, a_in_place && g.a_at.column_stride == 1 && !sums_apart ? g.m : kMaxRows, !b_in_place);
  const int64_t strip = round_up(parts(cut.columns, parts(cut.columns, kStrip)), Work::kColumns);
  // Packed a, packed b, sums, bias.
  const int64_t a = a_in_place ? 0 : Work::packed_a_size(cut.rows, block_ks), b = Work::packed_b_size(strip, block_ks),
                bias = g.bias_n ? cut.columns : 0;
  const int64_t sums = sums_apart ? cut.rows * cut.columns : 0;
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
      Isa::run(Work{std::min(cut.rows, g.m - i), columns, g.k, block_ks, strip, static_cast<const T*>(g.a) + i * g.a_at.row_stride,
          static_cast<const T*>(g.b) + j * g.b_at.column_stride, g.a_at, g.b_at, a_in_place, b_in_place, reinterpret_cast<Packed*>(room),
          reinterpret_cast<Packed*>(room + a), target});
    }
  });
}

// One matrix. A c without neighbours in its rows is made densely and then copied.
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

// A batch: small matrices and many are spread over the threads, large ones made one after the other by all.
template <class Isa, class Kind, class C> void multiply(const Gemm& g) {
  using T = typename Kind::Element;
  const int64_t terms = g.m * g.n * (g.k + 1);
  const bool together = terms > kTaskTerms && g.batch < 4 * thread_count();
  const auto multiply_matrix = [&](int64_t z) {
    Gemm one = g;
    one.batch = 1;
    one.a = static_cast<const T*>(g.a) + z * g.a_at.batch_stride;
    one.b = static_cast<const T*>(g.b) + z * g.b_at.batch_stride;
    one.c = static_cast<C*>(g.c) + z * g.c_at.batch_stride;
    multiply_any<Isa, Kind, C>(one);
  };
  if (is_dry_run()) return multiply_matrix(0);  // counts its buffers, which the next matrices use again
  parallel_for(g.batch, together ? g.batch : parts(kTaskTerms, terms), [&](int64_t begin, int64_t end) {
    for (int64_t z = begin; z < end; ++z) multiply_matrix(z);
  });
}

template <class T, class C> void multiply(const Gemm& g) {
  switch (cpu_isa()) {
#if defined(__x86_64__)
    case Isa::avx512_bf16:
      if constexpr (std::is_same_v<T, bf16>) return multiply<Avx512Bf16, Pairs, C>(g);
      [[fallthrough]];
    case Isa::avx512: return multiply<Avx512, Single<T>, C>(g);
    case Isa::avx2: return multiply<Avx2, Single<T>, C>(g);
#endif
    default: return multiply<Baseline, Single<T>, C>(g);
  }
}

}  // namespace

void gemm_blocked(const Gemm& g) {
  switch (g.dtype) {
    case Dtype::f32: return multiply<float, float>(g);
    case Dtype::f64: return multiply<double, double>(g);
    default: return g.c_f32 ? multiply<bf16, float>(g) : multiply<bf16, bf16>(g);
  }
}

}  // namespace ricci
