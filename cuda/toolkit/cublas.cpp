// Products on the GPU by cuBLASLt. The library is loaded when the first product is made (cuda/gemm/load_cublas.h), so that a
// program that makes none starts fast and runs where it is not installed. f32 without TF32, bf16 with sums in f32.
//   cuBLASLt stores matrices by columns: c_mn = a_mk b_kn by rows is, read by columns, c'_nm = b'_nk a'_km.
#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>

#include "core/error.h"
#include "core/tensor.h"
#include "cuda/gemm/backends.h"
#include "cuda/gemm/load_cublas.h"
#include "cuda/toolkit/runtime.h"

namespace ricci {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;  // bytes; what NVIDIA advises for the Hopper generation

std::mutex lock;  // for everything below

struct Library {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulDescCreate) describe_product;
  decltype(&cublasLtMatmulDescSetAttribute) set_product;
  decltype(&cublasLtMatrixLayoutCreate) describe_matrix;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_matrix;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  cublasLtHandle_t handle = nullptr;          // null: products take our own kernels
  std::map<cudaStream_t, Tensor> workspaces;  // products of two streams may run at the same time

  Library() {
    const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
    load_cublas({name, RICCI_CUDA_LIBRARIES "/" + name}, [this](const std::string& file) { return load(file); });
  }

  std::string load(const std::string& name) {
    void* const file = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!file) return dlerror();
    std::string missing;
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(file, name));
      if (!function) missing = std::string("lacks ") + name;
    };
    find(create, "cublasLtCreate");
    find(matmul, "cublasLtMatmul");
    find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    find(describe_product, "cublasLtMatmulDescCreate");
    find(set_product, "cublasLtMatmulDescSetAttribute");
    find(describe_matrix, "cublasLtMatrixLayoutCreate");
    find(set_matrix, "cublasLtMatrixLayoutSetAttribute");
    find(create_preference, "cublasLtMatmulPreferenceCreate");
    find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    find(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    if (!missing.empty()) return missing;
    const cublasStatus_t status = create(&handle);
    if (status == CUBLAS_STATUS_SUCCESS) return "";
    handle = nullptr;
    return "cublasLtCreate reports status " + std::to_string(status);
  }

  void* workspace(cudaStream_t stream) {
    Tensor& t = workspaces[stream];
    if (!t) t = Tensor({static_cast<int64_t>(kWorkspace) / size_of(Dtype::f32)}, Dtype::f32, Device::cuda);
    return t.raw();
  }
};

Library* loaded = nullptr;  // outlives every tensor

Library& library() {
  if (!loaded) loaded = new Library;
  return *loaded;
}

// A row-major matrix as it is handed over: its leading dimension, and whether cuBLASLt has to read it transposed.
struct Layout {
  int64_t leading;
  bool transposed, possible;
};
Layout layout_of(MatrixAt at, int64_t rows, int64_t columns) {
  if (at.column_stride == 1 && at.row_stride >= columns) return {at.row_stride, false, true};
  if (at.row_stride == 1 && at.column_stride >= rows) return {at.column_stride, true, true};
  return {0, false, false};
}

// The largest power of two, up to 256, that divides the address: some algorithms ask for more than others.
uint32_t alignment(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

// The alignment that c and the bias added to it both have.
uint32_t alignment_of_sum(const Gemm& g) { return g.bias_n ? std::min(alignment(g.c), alignment(g.bias_n)) : alignment(g.c); }

using Key = std::array<int64_t, 20>;

struct Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool usable = false;
};

// "bf16, batch 1, m 8, n 4, k 3, bias"
std::string text_of(const Gemm& g) {
  return format_message("{}, batch {}, m {}, n {}, k {}{}{}",
      {name_of(g.dtype), g.batch, g.m, g.n, g.k, g.bias_n ? ", bias" : "", g.c_f32 ? ", c in f32" : ""});
}

void ok(cublasStatus_t status, const char* call, const Gemm& g) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("gemm: {} reports status {} for {}", {call, static_cast<int>(status), text_of(g)});
}

// From now on our own kernel computes such products; it is hundreds of times slower for large ones, so nobody shall wonder.
bool not_possible(const char* why, const Gemm& g) {
  std::fprintf(stderr, "gemm: cuBLASLt %s (%s); our own, slower kernel computes it\n", why, text_of(g).c_str());
  return false;
}

cudaDataType_t type_of(Dtype dtype) {
  if (dtype == Dtype::f64) return CUDA_R_64F;
  return dtype == Dtype::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasLtMatrixLayout_t matrix(const Gemm& g, cudaDataType_t type, int64_t rows, int64_t columns, int64_t leading, int64_t batch_stride) {
  cublasLtMatrixLayout_t m = nullptr;
  const int32_t batch = static_cast<int32_t>(g.batch);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
    ok(library().set_matrix(m, attribute, &value, sizeof value), "cublasLtMatrixLayoutSetAttribute", g);
  };
  ok(library().describe_matrix(&m, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), leading),
      "cublasLtMatrixLayoutCreate", g);
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch);
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride);
  return m;
}

// The ways in which the parts of a long sum that several blocks share may be added up (split-K). A part is never rounded to less than f32:
// by default the library may also store or add parts in the type of the result, which is bf16 for a bf16 product.
uint32_t reduction_schemes(const Gemm& g) {
  const bool narrow_result = g.dtype == Dtype::bf16 && !g.c_f32;
  return narrow_result ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK;
}

void choose_algorithm(const Gemm& g, Plan& plan) {
  Library& l = library();
  cublasLtMatmulPreference_t preference = nullptr;
  ok(l.create_preference(&preference), "cublasLtMatmulPreferenceCreate", g);
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    ok(l.set_preference(preference, attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute", g);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction_schemes(g));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(g.b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(g.a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(g.c));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of_sum(g));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = l.heuristic(l.handle, plan.product, plan.b, plan.a, plan.c, plan.c, preference, 1, &best, &found);
  ok(l.destroy_preference(preference), "cublasLtMatmulPreferenceDestroy", g);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) ok(status, "cublasLtMatmulAlgoGetHeuristic", g);
  plan.algorithm = best.algo;
  plan.usable = status == CUBLAS_STATUS_SUCCESS && found > 0;
  if (!plan.usable) not_possible("has no algorithm for a product", g);
}

void set(const Plan& plan, cublasLtMatmulDescAttributes_t attribute, const auto& value, const Gemm& g) {
  ok(library().set_product(plan.product, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute", g);
}

Plan make_plan(const Gemm& g) {
  Plan plan;
  const Layout a = layout_of(g.a_at, g.m, g.k), b = layout_of(g.b_at, g.k, g.n), c = layout_of(g.c_at, g.m, g.n);
  const bool possible = a.possible && b.possible && c.possible && !c.transposed;
  if (!possible || (g.bias_n && g.c_f32)) {
    not_possible(possible ? "adds no bf16 bias to an f32 sum" : "does not read such strides", g);
    return plan;
  }
  Library& l = library();
  const cudaDataType_t type = type_of(g.dtype), sums = g.dtype == Dtype::f64 ? CUDA_R_64F : CUDA_R_32F;
  ok(l.describe_product(&plan.product, g.dtype == Dtype::f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, sums), "cublasLtMatmulDescCreate",
      g);
  const cublasOperation_t of_first = b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, of_second = a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(plan, CUBLASLT_MATMUL_DESC_TRANSA, of_first, g);
  set(plan, CUBLASLT_MATMUL_DESC_TRANSB, of_second, g);
  if (g.bias_n) {
    set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS, g);
    set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias_n, g);
  }
  plan.b = matrix(g, type, b.transposed ? g.k : g.n, b.transposed ? g.n : g.k, b.leading, g.b_at.batch_stride);
  plan.a = matrix(g, type, a.transposed ? g.m : g.k, a.transposed ? g.k : g.m, a.leading, g.a_at.batch_stride);
  plan.c = matrix(g, g.c_f32 ? CUDA_R_32F : type, g.n, g.m, c.leading, g.c_at.batch_stride);
  choose_algorithm(g, plan);
  return plan;
}

Plan& plan_for(const Gemm& g) {
  static std::map<Key, Plan> plans;
  const Key key{g.batch, g.m, g.n, g.k, g.a_at.row_stride, g.a_at.column_stride, g.a_at.batch_stride, g.b_at.row_stride,
      g.b_at.column_stride, g.b_at.batch_stride, g.c_at.row_stride, g.c_at.column_stride, g.c_at.batch_stride,
      static_cast<int64_t>(g.dtype), g.bias_n != nullptr, g.c_f32, alignment(g.a), alignment(g.b), alignment(g.c), alignment_of_sum(g)};
  const auto known = plans.find(key);
  return known != plans.end() ? known->second : plans.emplace(key, make_plan(g)).first->second;
}

}  // namespace

void cuda_build::forget_workspace(cudaStream_t stream) {
  const std::lock_guard locked(lock);
  if (loaded) loaded->workspaces.erase(stream);
}

bool gemm_cublas(const Gemm& g) {
  const std::lock_guard locked(lock);
  Library& l = library();
  if (!l.handle) return false;
  Plan& plan = plan_for(g);
  if (!plan.usable) return false;
  if (g.bias_n) set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias_n, g);  // the plan is that of many products
  const double one_f64 = 1, beta_f64 = g.accumulate ? 1 : 0;
  const float one_f32 = 1, beta_f32 = g.accumulate ? 1 : 0;
  const bool f64 = g.dtype == Dtype::f64;
  const cudaStream_t stream = cuda_build::stream();
  void* const workspace = l.workspace(stream);
  cuda_build::begin_launch("gemm");
  const cublasStatus_t status =
      l.matmul(l.handle, plan.product, f64 ? static_cast<const void*>(&one_f64) : &one_f32, g.b, plan.b, g.a, plan.a,
          f64 ? static_cast<const void*>(&beta_f64) : &beta_f32, g.c, plan.c, g.c, plan.c, &plan.algorithm, workspace, kWorkspace, stream);
  cuda_build::check_launch("gemm");
  plan.usable = status != CUBLAS_STATUS_NOT_SUPPORTED;
  if (!plan.usable) return not_possible("does not support a product", g);
  ok(status, "cublasLtMatmul", g);
  return true;
}

}  // namespace ricci
