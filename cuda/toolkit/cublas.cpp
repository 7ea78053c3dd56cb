// Computes products on the GPU with cuBLASLt: f32 without TF32, and bf16 with sums in f32.
//
// cuBLASLt stores matrices by columns. Our c_mn = a_mk b_kn by rows is c'_nm = b'_nk a'_km by columns, so its A is our b and its B is our
// a.
//
// A product needs a plan: its description, the layouts of its matrices and the algorithm that the library proposes first. Making a plan
// takes longer than a small product, so it is made once for all products with the same shapes, strides and alignments.
#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "cuda/gemm/backends.h"
#include "cuda/toolkit/cublas_library.h"

namespace ricci::cublas {
namespace {

std::mutex lock;  // guards the library, its plans and its workspace

struct Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool usable = false;
};

// A row-major matrix in cuBLASLt's terms: its leading dimension, and whether the library has to read it transposed.
struct Layout {
  int64_t leading;
  bool transposed, possible;
};
Layout layout_of(MatrixAt strides, int64_t rows, int64_t columns) {
  if (strides.column_stride == 1 && strides.row_stride >= columns) return {strides.row_stride, false, true};
  if (strides.row_stride == 1 && strides.column_stride >= rows) return {strides.column_stride, true, true};
  return {0, false, false};
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

void set(const Plan& plan, cublasLtMatmulDescAttributes_t attribute, const auto& value, const Gemm& g) {
  ok(library().set_product(plan.product, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute", g);
}

cublasLtEpilogue_t epilogue_of(const Gemm& g) {
  if (g.row_sums_m) return CUBLASLT_EPILOGUE_BGRADB;  // the library's B is our a
  return g.bias_n ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// The reason why cuBLASLt cannot compute the product; null if no reason is known.
const char* why_impossible(const Gemm& g, const Layout& a, const Layout& b, const Layout& c) {
  if (!a.possible || !b.possible || !c.possible || c.transposed) return "does not support such strides";
  return g.bias_n && g.c_f32 ? "does not add a bf16 bias to an f32 sum" : nullptr;
}

// The largest power of two, up to 256, that divides the address. Algorithms require different alignments.
uint32_t alignment(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

// The alignment of both c and the bias added to it.
uint32_t alignment_of_sum(const Gemm& g) { return g.bias_n ? std::min(alignment(g.c), alignment(g.bias_n)) : alignment(g.c); }

// The allowed ways to add the parts of a long sum that thread blocks share (split-K). By default, the library may round parts to the type
// of the result, for example bf16. We require at least f32.
uint32_t reduction_schemes(const Gemm& g) {
  const bool narrow_result = g.dtype == Dtype::bf16 && !g.c_f32;
  return narrow_result ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK;
}

cublasLtMatmulPreference_t preference_of(const Gemm& g) {
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
  return preference;
}

// Picks the algorithm that the library proposes first. The plan stays unusable if the library does not support the product. With a bias or
// row sums, the library reports this by one of two statuses.
void choose_algorithm(const Gemm& g, Plan& plan) {
  Library& l = library();
  const cublasLtMatmulPreference_t preference = preference_of(g);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status = l.heuristic(l.handle, plan.product, plan.b, plan.a, plan.c, plan.c, preference, 1, &found, &count);
  ok(l.destroy_preference(preference), "cublasLtMatmulPreferenceDestroy", g);
  const bool fused = g.row_sums_m || g.bias_n;  // the library treats a bias as an epilogue as well
  const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_INVALID_VALUE && fused);
  if (!refused) ok(status, "cublasLtMatmulAlgoGetHeuristic", g);
  plan.usable = !refused && count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
  if (plan.usable) plan.algorithm = found.algo;
  else not_possible("has no algorithm for a product", g);
}

// Sets the bias or the row sums of this product. Many products use the same plan.
void set_pointers(const Plan& plan, const Gemm& g) {
  if (g.bias_n) set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias_n, g);
  if (g.row_sums_m) set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.row_sums_m, g);
}

Plan make_plan(const Gemm& g) {
  Plan plan;
  const Layout a = layout_of(g.a_at, g.m, g.k), b = layout_of(g.b_at, g.k, g.n), c = layout_of(g.c_at, g.m, g.n);
  if (const char* why = why_impossible(g, a, b, c)) {
    not_possible(why, g);
    return plan;
  }
  Library& l = library();
  const cudaDataType_t type = type_of(g.dtype), sums = g.dtype == Dtype::f64 ? CUDA_R_64F : CUDA_R_32F;
  ok(l.describe_product(&plan.product, g.dtype == Dtype::f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, sums), "cublasLtMatmulDescCreate",
      g);
  const cublasOperation_t of_first = b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, of_second = a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(plan, CUBLASLT_MATMUL_DESC_TRANSA, of_first, g);
  set(plan, CUBLASLT_MATMUL_DESC_TRANSB, of_second, g);
  set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(g), g);
  set_pointers(plan, g);
  plan.b = matrix(g, type, b.transposed ? g.k : g.n, b.transposed ? g.n : g.k, b.leading, g.b_at.batch_stride);
  plan.a = matrix(g, type, a.transposed ? g.m : g.k, a.transposed ? g.k : g.m, a.leading, g.a_at.batch_stride);
  plan.c = matrix(g, g.c_f32 ? CUDA_R_32F : type, g.n, g.m, c.leading, g.c_at.batch_stride);
  choose_algorithm(g, plan);
  return plan;
}

// Everything that two products with the same plan have in common.
using Key = std::array<int64_t, 22>;
Key key_of(const Gemm& g) {
  return {g.batch, g.m, g.n, g.k, g.a_at.row_stride, g.a_at.column_stride, g.a_at.batch_stride, g.b_at.row_stride, g.b_at.column_stride,
      g.b_at.batch_stride, g.c_at.row_stride, g.c_at.column_stride, g.c_at.batch_stride, static_cast<int64_t>(g.dtype), g.bias_n != nullptr,
      g.c_f32, alignment(g.a), alignment(g.b), alignment(g.c), alignment_of_sum(g), static_cast<int64_t>(epilogue_of(g)),
      alignment(g.row_sums_m)};
}

Plan& plan_for(const Gemm& g) {
  static std::map<Key, Plan> plans;
  const Key key = key_of(g);
  const auto known = plans.find(key);
  return known != plans.end() ? known->second : plans.emplace(key, make_plan(g)).first->second;
}

// Enqueues the product on the current stream.
cublasStatus_t multiply(const Plan& plan, const Gemm& g) {
  Library& l = library();
  const double one_f64 = 1, beta_f64 = g.accumulate ? 1 : 0;
  const float one_f32 = 1, beta_f32 = g.accumulate ? 1 : 0;
  const bool f64 = g.dtype == Dtype::f64;
  return l.matmul(l.handle, plan.product, f64 ? static_cast<const void*>(&one_f64) : &one_f32, g.b, plan.b, g.a, plan.a,
      f64 ? static_cast<const void*>(&beta_f64) : &beta_f32, g.c, plan.c, g.c, plan.c, &plan.algorithm, l.workspace(), kWorkspace,
      cuda_build::stream());
}

}  // namespace
}  // namespace ricci::cublas

namespace ricci {

bool gemm_cublas(const Gemm& g) {
  const std::lock_guard locked(cublas::lock);
  if (!cublas::library().handle) return false;
  cublas::Plan& plan = cublas::plan_for(g);
  if (!plan.usable) return false;
  cublas::set_pointers(plan, g);
  cuda_build::begin_launch("gemm");
  const cublasStatus_t status = cublas::multiply(plan, g);
  cuda_build::check_launch("gemm", cudaGetLastError());
  plan.usable = status != CUBLAS_STATUS_NOT_SUPPORTED;
  if (!plan.usable) return cublas::not_possible("does not support a product", g);
  cublas::ok(status, "cublasLtMatmul", g);
  return true;
}

}  // namespace ricci
