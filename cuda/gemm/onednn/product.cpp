#include "cuda/gemm/onednn/product.h"

#include <sys/mman.h>

#include <array>
#include <dnnl.hpp>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "cuda/gemm/backends.h"

extern "C" {  // from the OpenMP library that oneDNN links; clang has no <omp.h> of it
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

namespace ricci::onednn {
namespace {

using dnnl::memory;

// Memory of the library, measured: its own code, and the code and buffers that a thread makes for a product.
constexpr int64_t kLibraryBytes = 3 << 20, kProductBytes = 144 << 10;
constexpr size_t kMaxPrimitives = 1024;  // per thread; sequences have many lengths

// A primitive is made for this: all of a Gemm but the pointers.
using Key = std::array<int64_t, 17>;

Key key_of(const Gemm& g) {
  return {g.batch, g.m, g.n, g.k, g.a_at.row_stride, g.a_at.column_stride, g.a_at.batch_stride, g.b_at.row_stride, g.b_at.column_stride,
      g.b_at.batch_stride, g.c_at.row_stride, g.c_at.column_stride, g.c_at.batch_stride, static_cast<int64_t>(g.dtype), g.accumulate,
      g.bias_n != nullptr, g.c_f32};
}

struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0;
    for (int64_t value : key) {
      hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

// A batch of one is described without the index of the batch.
memory::desc describe(const Gemm& g, int64_t matrices, int64_t rows, int64_t columns, MatrixAt strides, bool f32) {
  const auto type = f32 ? memory::data_type::f32 : memory::data_type::bf16;
  if (g.batch == 1) return {{rows, columns}, type, memory::dims{strides.row_stride, strides.column_stride}};
  return {{matrices, rows, columns}, type, memory::dims{strides.batch_stride, strides.row_stride, strides.column_stride}};
}

// The library writes code for a product when it is made and when it first runs. That takes address space, and the library crashes where
// there is none left, as under ulimit -v. One thread does this at a time: room that it found is not taken by the search of another.
std::unique_lock<std::mutex> wait_for_room() {
  static std::mutex one_at_a_time;
  std::unique_lock lock(one_at_a_time);
  constexpr size_t room = size_t{32} << 20;
  void* const found = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) fail("out of memory: matrix products need {} MiB of address space", {room >> 20});
  ::munmap(found, room);
  return lock;
}

// A product of one shape, ready to run on one thread.
class Prepared {
 public:
  explicit Prepared(const Gemm& g) : Prepared(wait_for_room(), g) {}

  // False if the library has no such product, or only its reference loops.
  explicit operator bool() const { return static_cast<bool>(product_); }

  void run(const Gemm& g) {
    std::unique_lock<std::mutex> first;
    if (!has_run_) first = wait_for_room();
    a_.set_data_handle(const_cast<void*>(g.a));
    b_.set_data_handle(const_cast<void*>(g.b));
    c_.set_data_handle(g.c);
    if (g.bias_n) bias_.set_data_handle(const_cast<void*>(g.bias_n));
    const dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_SRC, a_.get()}, {DNNL_ARG_WEIGHTS, b_.get()}, {DNNL_ARG_DST, c_.get()}, {DNNL_ARG_BIAS, bias_.get(true)}};
    const dnnl_status_t status = dnnl_primitive_execute(product_.get(), stream_.get(), g.bias_n ? 4 : 3, arguments);
    if (status == dnnl_out_of_memory) fail("out of memory in a matrix product");
    if (status != dnnl_success) fail("gemm: oneDNN reports status {}", {static_cast<int>(status)});
    has_run_ = true;
  }

 private:
  Prepared(const std::unique_lock<std::mutex>&, const Gemm& g) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
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
    a_ = memory(a, engine_, nullptr);
    b_ = memory(b, engine_, nullptr);
    c_ = memory(c, engine_, nullptr);
    if (g.bias_n) bias_ = memory(bias, engine_, nullptr);
  }

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
  bool has_run_ = false;
};

Prepared& prepared(const Gemm& g) {
  thread_local std::unordered_map<Key, Prepared, KeyHash> kept;
  if (const auto found = kept.find(key_of(g)); found != kept.end()) return found->second;
  if (kept.size() >= kMaxPrimitives) kept.clear();
  return kept.emplace(key_of(g), Prepared(g)).first->second;
}

}  // namespace

OneThread::OneThread() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}
OneThread::~OneThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

bool can_multiply(const Gemm& g) {
  const bool can = static_cast<bool>(prepared(g));
  if (!can || !is_dry_run()) return can;
  const Key key = key_of(g);
  keep_in_dry_run({}, kLibraryBytes);
  keep_in_dry_run({key.begin(), key.end()}, thread_count() * kProductBytes);
  return true;
}

void multiply(const Gemm& g) {
  Prepared& product = prepared(g);
  product ? product.run(g) : gemm_blocked(g);
}

}  // namespace ricci::onednn
