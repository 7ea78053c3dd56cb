// cuBLASLt stores matrices by columns: c_mn = a_mk b_kn by rows is, read by columns, c'_nm = b'_nk a'_km. So its A is our b, and its B our
// a.
#include "cuda/toolkit/cublas_plan.h"

#include <algorithm>
#include <map>

#include "cuda/gemm/cublas/tuned_products.h"

namespace ricci::cublas {
namespace {

// A row-major matrix as it is handed over: its leading dimension, and whether cuBLASLt has to read it transposed.
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
  if (g.epilogue == Epilogue::row_sums) return CUBLASLT_EPILOGUE_BGRADB;  // its B is our a
  if (g.epilogue == Epilogue::gelu) return g.beside ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS;
  if (g.epilogue == Epilogue::gelu_gradient) return CUBLASLT_EPILOGUE_DGELU;
  return g.bias_n ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// The reason why cuBLASLt cannot compute the product; null if perhaps it can.
const char* why_impossible(const Gemm& g, const Layout& a, const Layout& b, const Layout& c) {
  if (!a.possible || !b.possible || !c.possible || c.transposed) return "does not read such strides";
  if (g.bias_n && g.c_f32) return "adds no bf16 bias to an f32 sum";
  const bool reads_gelu = g.epilogue == Epilogue::gelu || g.epilogue == Epilogue::gelu_gradient;
  // Its errors were 1e-5 in f32 and 1e-9 in f64, on an H200. Only the rounding to bf16 is coarser.
  if (reads_gelu && g.dtype != Dtype::bf16) return "computes gelu less exactly than ricci";
  return reads_gelu && c.leading % 8 != 0 ? "wants rows of 8, 16, ... elements for gelu" : nullptr;
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
  if (g.beside && g.epilogue != Epilogue::row_sums) set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, c.leading, g);
  set_pointers(plan, g);
  plan.b = matrix(g, type, b.transposed ? g.k : g.n, b.transposed ? g.n : g.k, b.leading, g.b_at.batch_stride);
  plan.a = matrix(g, type, a.transposed ? g.m : g.k, a.transposed ? g.k : g.m, a.leading, g.a_at.batch_stride);
  plan.c = matrix(g, g.c_f32 ? CUDA_R_32F : type, g.n, g.m, c.leading, g.c_at.batch_stride);
  choose_algorithm(g, plan);
  return plan;
}

}  // namespace

uint32_t alignment(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

uint32_t alignment_of_sum(const Gemm& g) { return g.bias_n ? std::min(alignment(g.c), alignment(g.bias_n)) : alignment(g.c); }

Key key_of(const Gemm& g) {
  return {g.batch, g.m, g.n, g.k, g.a_at.row_stride, g.a_at.column_stride, g.a_at.batch_stride, g.b_at.row_stride, g.b_at.column_stride,
      g.b_at.batch_stride, g.c_at.row_stride, g.c_at.column_stride, g.c_at.batch_stride, static_cast<int64_t>(g.dtype), g.bias_n != nullptr,
      g.c_f32, alignment(g.a), alignment(g.b), alignment(g.c), alignment_of_sum(g), static_cast<int64_t>(epilogue_of(g)),
      alignment(g.beside)};
}

void set_pointers(const Plan& plan, const Gemm& g) {
  if (g.bias_n) set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias_n, g);
  if (!g.beside) return;
  const bool sums = g.epilogue == Epilogue::row_sums;
  set(plan, sums ? CUBLASLT_MATMUL_DESC_BIAS_POINTER : CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, g.beside, g);
}

Plan& plan_for(const Gemm& g) {
  static std::map<Key, Plan> plans;
  static const TunedProducts* chosen_by = nullptr;
  if (tuned_products() != chosen_by) plans.clear();  // algorithms are chosen anew
  chosen_by = tuned_products();
  const Key key = key_of(g);
  const auto known = plans.find(key);
  return known != plans.end() ? known->second : plans.emplace(key, make_plan(g)).first->second;
}

}  // namespace ricci::cublas
