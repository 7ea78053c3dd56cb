// Products by oneDNN. c is cut into pieces by its shape alone and a piece is one call on one thread: the library's own
// threads would cut sums over k, and the bits would follow their number. Primitives are kept: making one takes as long as a
// product of ten million terms.
#include "cuda/gemm/backends.h"

#ifndef RICCI_HAS_ONEDNN

namespace ricci {
bool gemm_onednn(const Gemm&) { return false; }
}  // namespace ricci

#else

#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <dnnl.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"

extern "C" {  // of the OpenMP library that oneDNN links; clang has no <omp.h> of it
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

namespace ricci {
namespace {

using dnnl::memory;

constexpr double kPieceTerms = 1 << 18;   // n^3 times as many multiplications are cut into n pieces
constexpr double kMostPieces = 64;
constexpr int64_t kLeast = 48;            // fewer rows or columns are not cut
constexpr int64_t kMostTerms = 8192;      // longer sums are made in parts: pieces then find a and b in the caches
// The same for f32 where the columns of a lie together, as in gradients of weights. Such products take 0.75 to 1.00 of the processor time that
// they take with sums over all terms at once (tests/bench/results/2026-11-22-products.json).
constexpr int64_t kMostTermsF32 = 512;
constexpr int64_t kMostOfColumn = 2047;   // terms of a b whose columns lie together: of more, gemm_blocked is faster
constexpr int64_t kMostRowsOfTransposed = 1023;  // of an f32 a whose columns lie together; of more, gemm_blocked takes 0.5 to 0.98 of the time
constexpr double kMostTermsBf16 = 1 << 26;  // multiplications; of more, gemm_blocked makes GPT-2's steps 6% faster
constexpr int64_t kLeastBuffered = 1 << 15, kMostBuffered = 3 << 17;  // elements of a c that stays in the cache
constexpr size_t kMostPrimitives = 1024;  // per thread; sequences have many lengths

// What a primitive is made for: all of a Gemm but the pointers.
using Key = std::array<int64_t, 17>;

Key key_of(const Gemm& g) {
  return {g.batch, g.m, g.n, g.k, g.a_at.row_stride, g.a_at.column_stride, g.a_at.batch_stride, g.b_at.row_stride, g.b_at.column_stride,
          g.b_at.batch_stride, g.c_at.row_stride, g.c_at.column_stride, g.c_at.batch_stride, static_cast<int64_t>(g.dtype), g.accumulate,
          g.bias_n != nullptr, g.c_f32};
}

struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0;
    for (int64_t value : key) hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
    return hash;
  }
};

// Tells the library, on this thread, that there is one thread.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// A batch of one is described without the index of the batch.
memory::desc describe(const Gemm& g, int64_t matrices, int64_t rows, int64_t columns, MatrixAt at, bool f32) {
  const auto type = f32 ? memory::data_type::f32 : memory::data_type::bf16;
  if (g.batch == 1) return {{rows, columns}, type, memory::dims{at.row_stride, at.column_stride}};
  return {{matrices, rows, columns}, type, memory::dims{at.batch_stride, at.row_stride, at.column_stride}};
}

// The library writes code for a product, which takes address space, and crashes where there is none left, as under ulimit -v.
void check_room() {
  constexpr size_t room = size_t{32} << 20;
  void* const found = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) fail("out of memory: matrix products need {} MiB of address space", {room >> 20});
  ::munmap(found, room);
}

// A product of one shape, ready to run on one thread.
class Prepared {
 public:
  explicit Prepared(const Gemm& g) : Prepared((check_room(), g), dnnl::engine(dnnl::engine::kind::cpu, 0)) {}
  Prepared(const Gemm& g, const dnnl::engine& engine) : engine_(engine), stream_(engine_) {
    const bool f32 = g.dtype == Dtype::f32;
    const memory::desc a = describe(g, g.batch, g.m, g.k, g.a_at, f32), b = describe(g, g.batch, g.k, g.n, g.b_at, f32);
    const memory::desc c = describe(g, g.batch, g.m, g.n, g.c_at, f32 || g.c_f32);
    const memory::desc bias = g.bias_n ? describe(g, 1, 1, g.n, {g.n, 1, g.n}, f32) : memory::desc();
    dnnl::primitive_attr attributes;
    if (g.accumulate) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      attributes.set_post_ops(add);
    }
    try {
      make(a, b, bias, c, attributes);
    } catch (const dnnl::error&) {
      return;  // no such product
    }
    a_ = memory(a, engine_, nullptr), b_ = memory(b, engine_, nullptr), c_ = memory(c, engine_, nullptr);
    if (g.bias_n) bias_ = memory(bias, engine_, nullptr);
  }

  // Empty: the library has no such product, or only its reference loops.
  explicit operator bool() const { return static_cast<bool>(product_); }

  void run(const Gemm& g) {
    a_.set_data_handle(const_cast<void*>(g.a)), b_.set_data_handle(const_cast<void*>(g.b)), c_.set_data_handle(g.c);
    if (g.bias_n) bias_.set_data_handle(const_cast<void*>(g.bias_n));
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, a_.get()},
                                         {DNNL_ARG_WEIGHTS, b_.get()},
                                         {DNNL_ARG_DST, c_.get()},
                                         {DNNL_ARG_BIAS, bias_.get(true)}};
    const dnnl_status_t status = dnnl_primitive_execute(product_.get(), stream_.get(), g.bias_n ? 4 : 3, arguments);
    if (status == dnnl_out_of_memory) fail("out of memory in a matrix product");
    if (status != dnnl_success) fail("gemm: oneDNN reports status {}", {static_cast<int>(status)});
  }

 private:
  void make(const memory::desc& a, const memory::desc& b, const memory::desc& bias, const memory::desc& c,
            const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine_, a, b, bias, c, attributes);
#else
    const auto operation = bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc description(operation, attributes, engine_);
#endif
    if (std::string_view(description.impl_info_str()).find("ref") == std::string_view::npos) product_ = dnnl::matmul(description);
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul product_;
  memory a_, b_, c_, bias_;
};

// The product as the library makes it. It adds its blocks of terms to c one after the other: rows of f32 that lie far apart in
// memory would be fetched for each, so such a c is made without gaps in a buffer and copied.
Gemm as_made(const Gemm& g) {
  if (g.dtype != Dtype::bf16 || !g.c_f32 || g.accumulate || g.batch != 1) return g;
  if (g.m * g.n < kLeastBuffered || g.m * g.n > kMostBuffered) return g;
  thread_local std::vector<float> buffer_mn(kMostBuffered);
  Gemm made = g;
  made.c = buffer_mn.data(), made.c_at = {g.n, 1, g.m * g.n};
  return made;
}

Prepared& prepared(const Gemm& g) {
  thread_local std::unordered_map<Key, Prepared, KeyHash> kept;
  if (const auto found = kept.find(key_of(g)); found != kept.end()) return found->second;
  if (kept.size() >= kMostPrimitives) kept.clear();
  return kept.emplace(key_of(g), Prepared(g)).first->second;
}

// How c is cut: whole matrices, several to a piece, or each matrix into rows x columns.
struct Pieces {
  const Gemm& g;
  int64_t matrices = 1, rows, columns, row_parts, column_parts, count;

  explicit Pieces(const Gemm& g_) : g(g_), rows(g_.m), columns(g_.n) {
    const double terms = static_cast<double>(g.batch * g.m * g.n * g.k);
    const auto wanted = static_cast<int64_t>(std::clamp(std::cbrt(terms / kPieceTerms), 1.0, kMostPieces));
    if (g.batch >= wanted)
      matrices = parts(g.batch, wanted);
    else
      cut(wanted);
    row_parts = parts(g.m, rows), column_parts = parts(g.n, columns);
    count = parts(g.batch, matrices) * row_parts * column_parts;
  }
  Gemm operator[](int64_t i) const {
    const int64_t z = i / (row_parts * column_parts) * matrices, size = size_of(g.dtype), c_size = g.c_f32 ? 4 : size;
    const int64_t row = i / column_parts % row_parts * rows, column = i % column_parts * columns;
    Gemm piece = g;
    piece.batch = std::min(matrices, g.batch - z), piece.m = std::min(rows, g.m - row), piece.n = std::min(columns, g.n - column);
    piece.a = static_cast<const char*>(g.a) + (z * g.a_at.batch_stride + row * g.a_at.row_stride) * size;
    piece.b = static_cast<const char*>(g.b) + (z * g.b_at.batch_stride + column * g.b_at.column_stride) * size;
    piece.c = static_cast<char*>(g.c) + (z * g.c_at.batch_stride + row * g.c_at.row_stride + column) * c_size;
    if (g.bias_n) piece.bias_n = static_cast<const char*>(g.bias_n) + column * size;
    return piece;
  }

 private:
  static int64_t parts(int64_t n, int64_t most) { return (n + most - 1) / most; }
  void cut(int64_t wanted) {
    const int64_t most = g.dtype == Dtype::bf16 && g.c_f32 ? kMostBuffered : g.m * g.n;
    for (int64_t made = g.batch; (made * 2 <= wanted || rows * columns > most) && (rows > kLeast || columns > kLeast); made *= 2) {
      int64_t& longer = rows > kLeast && rows * 2 > columns ? rows : columns;  // rather rows: the columns of b get packed
      longer = parts(longer, 32) * 16;
    }
  }
};

bool unit_stride(const MatrixAt& at, int64_t rows, int64_t columns) {
  return (at.column_stride == 1 && at.row_stride >= columns) || (at.row_stride == 1 && at.column_stride >= rows);
}

// Where gemm_blocked has been measured to be faster.
bool better_blocked(const Gemm& g) {
  if (g.dtype == Dtype::f32) {
    if (g.batch == 1 && g.a_at.column_stride != 1 && g.m > kMostRowsOfTransposed && g.n >= kLeast) return true;
    return g.b_at.column_stride != 1 && g.k > kMostOfColumn && g.m >= kLeast;
  }
  return cpu_isa() == Isa::avx512_bf16 && !cpu_has_bf16_tiles() && g.batch == 1 && double(g.m) * double(g.n) * double(g.k) > kMostTermsBf16;
}

// Writes without reading what stood there: the gradient of a large matrix is not needed again before all others are made.
void copy_past_caches(const float* from, int64_t n, float* to) {
  int64_t i = 0;
#ifdef __SSE2__
  for (; i < n && reinterpret_cast<uintptr_t>(to + i) % 16 != 0; ++i) to[i] = from[i];
  for (; i + 4 <= n; i += 4) _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
#endif
  for (; i < n; ++i) to[i] = from[i];
}

void end_of_copies() {
#ifdef __SSE2__
  _mm_sfence();  // another thread reads them
#endif
}

void multiply_piece(const Gemm& g) {
  const Gemm made = as_made(g);
  Prepared& product = prepared(made);
  product ? product.run(made) : gemm_blocked(made);
  if (made.c == g.c) return;
  const auto* from_mn = static_cast<const float*>(made.c);
  for (int64_t i = 0; i < g.m; ++i) copy_past_caches(from_mn + i * g.n, g.n, static_cast<float*>(g.c) + i * g.c_at.row_stride);
  end_of_copies();
}

bool multiply_pieces(const Gemm& g) {
  const Pieces pieces(g);
  {
    const OneThread one;
    if (!prepared(as_made(pieces[0]))) return false;
  }
  parallel_for(pieces.count, 1, [&](int64_t begin, int64_t end) {
    const OneThread one;
    for (int64_t i = begin; i < end; ++i) {
      multiply_piece(pieces[i]);
    }
  });
  return true;
}

// The terms from `first` on, at most `most` of them; all but the first terms are added to c.
Gemm terms_of(const Gemm& g, int64_t first, int64_t most) {
  const int64_t size = size_of(g.dtype);
  Gemm part = g;
  part.k = std::min(most, g.k - first);
  part.a = static_cast<const char*>(g.a) + first * g.a_at.column_stride * size;
  part.b = static_cast<const char*>(g.b) + first * g.b_at.row_stride * size;
  if (first > 0) part.accumulate = true, part.bias_n = nullptr;
  return part;
}

}  // namespace

bool gemm_onednn(const Gemm& g) {
  if (g.dtype == Dtype::f64 || g.k == 0 || g.c_at.column_stride != 1) return false;
  if (!unit_stride(g.a_at, g.m, g.k) || !unit_stride(g.b_at, g.k, g.n)) return false;
  if (better_blocked(g)) return false;
  if (g.dtype == Dtype::bf16 && !g.c_f32) return multiply_pieces(g);  // sums are f32 to the end
  const int64_t most = g.dtype == Dtype::f32 && g.a_at.column_stride != 1 ? kMostTermsF32 : kMostTerms;
  const int64_t blocks = (g.k + most - 1) / most, terms = (g.k + blocks - 1) / blocks;
  for (int64_t first = 0; first < g.k; first += terms)
    if (!multiply_pieces(terms_of(g, first, terms))) return false;
  return true;
}

}  // namespace ricci

#endif
