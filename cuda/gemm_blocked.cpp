// c_mn = sum_k a_mk b_kn on the CPU without a library. c is cut into tasks that share nothing; a task packs a block of a and
// panels of b that stay in the caches and multiplies them tile by tile (Goto and van de Geijn 2008). How c is cut follows
// the number of threads; the order in which an element is summed does not.
#include "cuda/gemm_backends.h"
#include "cuda/gemm_tile.h"
#include "cuda/isa.h"
#include "cuda/parallel.h"

namespace ricci {
namespace {

constexpr int64_t kBlockBytes = 2048;                     // of one row of a in a block: 512 f32 or 256 f64
constexpr int64_t kBlockPanels = 12;                      // of a in a block
constexpr int64_t kTaskRows = 1024, kTaskColumns = 1024;  // at most: what a task packs stays in the caches
constexpr int64_t kTaskTerms = int64_t{1} << 21;       // about this many at least, before c is cut up for the threads

constexpr int64_t parts(int64_t n, int64_t most) { return (n + most - 1) / most; }
constexpr int64_t round_up(int64_t n, int64_t unit) { return parts(n, unit) * unit; }
HD int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// The instruction sets, and the tile that fills the registers of each.
#if defined(__x86_64__)
struct Avx512 {
  template <class A> using TileOf = Tile<14, 64 / sizeof(A)>;
  template <class Body> static void run(const Body& body) { run_avx512(body, 0, 1); }
};
struct Avx2 {
  template <class A> using TileOf = Tile<6, 32 / sizeof(A)>;
  template <class Body> static void run(const Body& body) { run_avx2(body, 0, 1); }
};
#endif
struct Baseline {
  template <class A> using TileOf = Tile<6, 16 / sizeof(A)>;
  template <class Body> static void run(const Body& body) { run_baseline(body, 0, 1); }
};

// The part of one matrix c that a thread makes from its first to its last element.
template <class Isa, class T> struct Task {
  using A = Accumulator<T>;
  using Tile = typename Isa::template TileOf<A>;
  int64_t rows, columns, k, block_ks;
  const T *a, *b, *bias;  // at the part's first row, first column; bias may be null
  void* c;
  MatrixAt a_at, b_at, c_at;
  bool accumulate, c_f32;
  A *packed_a, *packed_b, *sums;  // sums is null when they are made in c itself

  HD void operator()(int64_t, int64_t) const {
    A* const to = sums ? sums : static_cast<A*>(c);
    const int64_t row_stride = sums ? columns : c_at.row_stride;
    if (!sums && bias) start_with_bias(to);
    const bool started = !sums && (accumulate || bias);
    for (int64_t from = 0; from < k; from += block_ks)
      for (int64_t i = 0; i < rows; i += kBlockPanels * Tile::kRows)
        add_block(i, from, to + i * row_stride, row_stride, started || from > 0);
    if (!sums) return;
    if (c_f32)
      store(static_cast<float*>(c));
    else
      store(static_cast<T*>(c));
  }

  // Block i, from of a, times b, to rows i .. of the sums.
  HD void add_block(int64_t i, int64_t from, A* to, int64_t row_stride, bool add) const {
    const int64_t ks = least(block_ks, k - from), block_rows = least(kBlockPanels * Tile::kRows, rows - i);
    const T* block = a + i * a_at.row_stride + from * a_at.column_stride;
    for_panels<Tile::kRows>(block_rows, [&](auto panel_rows, int64_t row, int64_t at) {
      pack_rows<panel_rows()>(block + row * a_at.row_stride, a_at.row_stride, a_at.column_stride, ks, packed_a + at * ks);
    });
    for (int64_t j = 0; j < columns; j += Tile::kColumns) {
      const int64_t width = least(Tile::kColumns, columns - j);
      A* panel = packed_b + j * ks;
      if (i == 0)
        pack_columns<Tile::kVector>(b + from * b_at.row_stride + j * b_at.column_stride, b_at.row_stride, b_at.column_stride,
                                    ks, width, panel);
      for_panels<Tile::kRows>(block_rows, [&](auto panel_rows, int64_t row, int64_t at) {
        using Multiply = MultiplyTile<panel_rows(), Tile::kVector, A>;
        Isa::run(Multiply{ks, packed_a + at * ks, panel, to + row * row_stride + j, row_stride, width, add});
      });
    }
  }

  HD void start_with_bias(A* to) const {
    for (int64_t i = 0; i < rows; ++i, to += c_at.row_stride)
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) to[j] = A(bias[j]) + (accumulate ? to[j] : 0);
  }

  template <class C> HD void store(C* to) const {
    for (int64_t i = 0; i < rows; ++i, to += c_at.row_stride)
      for (int64_t j = 0; j < columns; ++j) {
        C& element = to[j * c_at.column_stride];
        element = static_cast<C>((k ? sums[i * columns + j] : 0) + (bias ? A(bias[j]) : 0) + (accumulate ? static_cast<A>(element) : 0));
      }
  }
};

// How the batch of matrices c is cut into tasks.
struct Cut {
  int64_t rows, columns;  // of a task
  int64_t row_parts, column_parts;

  Cut(const Gemm& g, int64_t row_unit, int64_t column_unit) {
    row_parts = parts(g.m, kTaskRows), column_parts = parts(g.n, kTaskColumns);
    const int64_t wanted = thread_count() == 1 ? 1 : 4 * thread_count();
    while (g.batch * row_parts * column_parts < wanted && g.m * g.n * g.k / (row_parts * column_parts) > 2 * kTaskTerms)
      (g.m / row_parts > g.n / column_parts ? row_parts : column_parts) *= 2;
    rows = round_up(parts(g.m, row_parts), row_unit), row_parts = parts(g.m, rows);
    columns = round_up(parts(g.n, column_parts), column_unit), column_parts = parts(g.n, columns);
  }
};

template <class Isa, class T> void multiply(const Gemm& g) {
  using A = Accumulator<T>;
  using Tile = typename Isa::template TileOf<A>;
  const Cut cut(g, Tile::kRows, Tile::kColumns);
  // k is cut into blocks of equal length.
  const int64_t most_ks = kBlockBytes / static_cast<int64_t>(sizeof(A)), block_ks = g.k ? round_up(parts(g.k, parts(g.k, most_ks)), 16) : 0;
  const int64_t packed_a = padded(Tile::kRows) * block_ks * least(kBlockPanels, parts(cut.rows, Tile::kRows));
  const int64_t packed_b = cut.columns * block_ks;
  const bool in_place = std::is_same_v<A, T> && g.c_at.column_stride == 1 && g.k > 0;
  const int64_t c_size = g.c_f32 ? 4 : size_of(g.dtype);

  const int64_t tasks_of_matrix = cut.row_parts * cut.column_parts, terms = g.m * g.n * (g.k + 1) / tasks_of_matrix + 1;
  parallel_for(g.batch * tasks_of_matrix, parts(kTaskTerms, terms), [&](int64_t begin, int64_t end) {
    const Tensor memory({packed_a + packed_b + (in_place ? 0 : cut.rows * cut.columns)}, dtype_of<A>);
    A* const packed = memory.data<A>();
    for (int64_t task = begin; task < end; ++task) {
      const int64_t z = task / tasks_of_matrix;
      const int64_t i = task / cut.column_parts % cut.row_parts * cut.rows, j = task % cut.column_parts * cut.columns;
      const T* a = static_cast<const T*>(g.a) + z * g.a_at.batch_stride + i * g.a_at.row_stride;
      const T* b = static_cast<const T*>(g.b) + z * g.b_at.batch_stride + j * g.b_at.column_stride;
      const T* bias = g.bias_n ? static_cast<const T*>(g.bias_n) + j : nullptr;
      void* c = static_cast<char*>(g.c) + c_size * (z * g.c_at.batch_stride + i * g.c_at.row_stride + j * g.c_at.column_stride);
      Isa::run(Task<Isa, T>{least(cut.rows, g.m - i), least(cut.columns, g.n - j), g.k, block_ks, a, b, bias, c, g.a_at, g.b_at, g.c_at,
                            g.accumulate, g.c_f32, packed, packed + packed_a, in_place ? nullptr : packed + packed_a + packed_b});
    }
  });
}

template <class T> void multiply(const Gemm& g) {
  switch (cpu_isa()) {
#if defined(__x86_64__)
    case Isa::avx512: return multiply<Avx512, T>(g);
    case Isa::avx2: return multiply<Avx2, T>(g);
#endif
    default: return multiply<Baseline, T>(g);
  }
}

}  // namespace

void gemm_blocked(const Gemm& g) {
  switch (g.dtype) {
    case Dtype::f32: return multiply<float>(g);
    case Dtype::f64: return multiply<double>(g);
    default: return multiply<bf16>(g);
  }
}

}  // namespace ricci
