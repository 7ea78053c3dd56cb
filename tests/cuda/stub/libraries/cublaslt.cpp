// A stand-in for cuBLASLt, a separate library: D = alpha op(A) op(B) + beta C by columns, with a bias, or the column sums of op(B). It
// checks all arguments and every element that the library would touch; sums are in f64. If the preference of a bf16 product allows sums in
// the type of the result, the result is the sum of four parts rounded to bf16. A wrong preference then shows in the numbers.
#include <cublasLt.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "core/dtype.h"
#include "tests/cuda/stub/libraries/calls.h"

namespace {

// ---- A product, element by element, with sums in f64

struct Product {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;

  bool is_biased() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
};
struct Matrix {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
};
size_t size_of(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

double value(const void* data, cudaDataType_t type, int64_t i) {
  if (type == CUDA_R_64F) return static_cast<const double*>(data)[i];
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  return static_cast<float>(static_cast<const ricci::bf16*>(data)[i]);
}
void store(void* data, cudaDataType_t type, int64_t i, double x) {
  if (type == CUDA_R_64F) static_cast<double*>(data)[i] = x;
  else if (type == CUDA_R_32F) static_cast<float*>(data)[i] = static_cast<float>(x);
  else static_cast<ricci::bf16*>(data)[i] = ricci::bf16(static_cast<float>(x));
}

// The offset of element (i, j) of matrix z of op(m).
int64_t place(const Matrix& m, cublasOperation_t op, int64_t z, int64_t i, int64_t j) {
  return z * m.stride + (op == CUBLAS_OP_T ? j + i * m.leading : i + j * m.leading);
}

// One call, as it runs on its stream.
struct Call {
  Product product;
  Matrix a_of, b_of, c_of, d_of;
  const void *a, *b, *c;
  void* d;
  double alpha, beta;
  bool rounded_parts;

  double sum(int64_t z, int64_t i, int64_t j) const {
    const auto k = static_cast<int64_t>(product.a == CUBLAS_OP_T ? a_of.rows : a_of.columns);
    double parts[4] = {};
    for (int64_t l = 0; l < k; ++l)
      parts[l * 4 / k] += value(a, a_of.type, place(a_of, product.a, z, i, l)) * value(b, b_of.type, place(b_of, product.b, z, l, j));
    double all = 0;
    for (const double part : parts) all += rounded_parts ? static_cast<double>(float(ricci::bf16(static_cast<float>(part)))) : part;
    return all;
  }
  double element(int64_t z, int64_t i, int64_t j) const {
    double x = alpha * sum(z, i, j);
    if (beta != 0) x += beta * value(c, c_of.type, place(c_of, CUBLAS_OP_N, z, i, j));
    return product.is_biased() ? x + value(product.bias, d_of.type, i) : x;
  }
  void operator()() const {
    const auto rows = static_cast<int64_t>(d_of.rows), columns = static_cast<int64_t>(d_of.columns);
    for (int64_t z = 0; z < d_of.batch; ++z)
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i) store(d, d_of.type, place(d_of, CUBLAS_OP_N, z, i, j), element(z, i, j));
    const auto k = static_cast<int64_t>(product.b == CUBLAS_OP_T ? b_of.columns : b_of.rows);
    for (int64_t j = 0; j < columns && product.epilogue == CUBLASLT_EPILOGUE_BGRADB; ++j) {
      double of_column = 0;
      for (int64_t l = 0; l < k; ++l) of_column += value(b, b_of.type, place(b_of, product.b, 0, l, j));
      store(const_cast<void*>(product.bias), d_of.type, j, of_column);
    }
  }
};

// ---- The library's settings

struct Preference {
  size_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK, a = 256, b = 256, c = 256, d = 256;
};
// The contents of an algorithm: the problem that it was chosen for.
struct Chosen {
  uint64_t problem;
  uint32_t reductions, a, b, c, d;
  size_t workspace;
};
static_assert(sizeof(Chosen) <= sizeof(cublasLtMatmulAlgo_t));

struct Problem {
  const Product& product;
  const Matrix &a, &b, &c, &d;
};

cublasStatus_t wrong(const char* what) { return static_cast<cublasStatus_t>(ricci_stub_wrong(CUBLAS_STATUS_INVALID_VALUE, what)); }

cublasStatus_t asked(const char* call) { return static_cast<cublasStatus_t>(ricci_stub_status(call)); }

template <class T, class Opaque> T& object(Opaque* handle) { return *reinterpret_cast<T*>(handle); }

uint64_t number_of(const Problem& p) {
  uint64_t hash = 1469598103934665603u;
  const auto mix = [&](uint64_t x) { hash = (hash ^ x) * 1099511628211u; };
  for (const Matrix* m : {&p.a, &p.b, &p.c, &p.d})
    for (const uint64_t x : {uint64_t(m->type), m->rows, m->columns, uint64_t(m->leading), uint64_t(m->batch), uint64_t(m->stride)}) mix(x);
  for (const int64_t x : {int64_t(p.product.compute), int64_t(p.product.a), int64_t(p.product.b), int64_t(p.product.epilogue)})
    mix(uint64_t(x));
  return hash;
}

cublasStatus_t check_types(const Problem& p) {
  const cudaDataType_t in = p.a.type, out = p.d.type;
  const bool f64 = in == CUDA_R_64F;
  const auto compute = f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
  if (p.product.compute != compute || p.product.scale != (f64 ? CUDA_R_64F : CUDA_R_32F)) return wrong("compute or scale type");
  if (p.b.type != in || p.c.type != out || (out != in && !(in == CUDA_R_16BF && out == CUDA_R_32F))) return wrong("types of matrices");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check_epilogue(const Problem& p) {
  for (const int known : {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BGRADB})
    if (p.product.epilogue == known) return CUBLAS_STATUS_SUCCESS;
  return wrong("epilogue");
}

cublasStatus_t check_shapes(const Problem& p) {
  const bool at = p.product.a == CUBLAS_OP_T, bt = p.product.b == CUBLAS_OP_T;
  const uint64_t m = at ? p.a.columns : p.a.rows, k = at ? p.a.rows : p.a.columns, n = bt ? p.b.rows : p.b.columns;
  if ((bt ? p.b.columns : p.b.rows) != k || p.d.rows != m || p.d.columns != n || p.c.rows != m || p.c.columns != n)
    return wrong("m, n or k of the matrices differ");
  for (const Matrix* each : {&p.a, &p.b, &p.c, &p.d}) {
    if (each->leading < static_cast<int64_t>(each->rows)) return wrong("a leading dimension below the number of rows");
    if (each->batch != p.d.batch) return wrong("batch counts differ");
  }
  if (const cublasStatus_t status = check_epilogue(p)) return status;
  return check_types(p);
}

// Every element is in one allocation, and the pointer has the promised alignment.
cublasStatus_t check_memory(const Matrix& m, const void* data, uint32_t alignment) {
  const int64_t last = place(m, CUBLAS_OP_N, m.batch - 1, static_cast<int64_t>(m.rows) - 1, static_cast<int64_t>(m.columns) - 1);
  if (!ricci_stub_holds(data, static_cast<size_t>(last + 1) * size_of(m.type))) return wrong("a matrix that is not in one allocation");
  return reinterpret_cast<uintptr_t>(data) % alignment ? wrong("a pointer that is less aligned than was promised") : CUBLAS_STATUS_SUCCESS;
}

// The same for the bias or the sums.
cublasStatus_t check_bias(const Problem& p) {
  const bool sums = p.product.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  const uint64_t length = sums ? p.d.columns : p.d.rows;
  if ((sums || p.product.is_biased()) && !ricci_stub_holds(p.product.bias, length * size_of(p.d.type)))
    return wrong("a bias that is not in one allocation");
  return CUBLAS_STATUS_SUCCESS;
}

// A stream does not share its workspace.
cublasStatus_t check_workspace(const void* workspace, size_t bytes, const Chosen& chosen, cudaStream_t stream) {
  static std::map<uint64_t, cudaStream_t> users;
  if (bytes < chosen.workspace || !ricci_stub_holds(workspace, bytes)) return wrong("a workspace that is not in one allocation");
  const auto [user, is_new] = users.emplace(ricci_stub_allocation(workspace), stream);
  return user->second == stream ? CUBLAS_STATUS_SUCCESS : wrong("one workspace for two streams");
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(1);
  return asked("cublasLtCreate");
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute, cudaDataType_t scale) {
  *product = reinterpret_cast<cublasLtMatmulDesc_t>(new Product{compute, scale});
  return asked("cublasLtMatmulDescCreate");
}
cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const void* from, size_t bytes) {
  if (const cublasStatus_t status = asked("cublasLtMatmulDescSetAttribute")) return status;
  Product& p = object<Product>(product);
  const auto take = [&](auto& to) {
    if (bytes != sizeof to) return wrong("the size of an attribute");
    std::memcpy(&to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) return take(p.a);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) return take(p.b);
  if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) return take(p.epilogue);
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return take(p.bias);
  return wrong("an attribute that the stub does not know");
}
cublasStatus_t cublasLtMatrixLayoutCreate(
    cublasLtMatrixLayout_t* matrix, cudaDataType type, uint64_t rows, uint64_t columns, int64_t leading) {
  *matrix = reinterpret_cast<cublasLtMatrixLayout_t>(new Matrix{type, rows, columns, leading});
  return asked("cublasLtMatrixLayoutCreate");
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t matrix, cublasLtMatrixLayoutAttribute_t attribute, const void* from, size_t bytes) {
  if (const cublasStatus_t status = asked("cublasLtMatrixLayoutSetAttribute")) return status;
  Matrix& m = object<Matrix>(matrix);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof m.batch) std::memcpy(&m.batch, from, bytes);
  else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof m.stride) std::memcpy(&m.stride, from, bytes);
  else return wrong("an attribute of a matrix");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return asked("cublasLtMatmulPreferenceCreate");
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &object<Preference>(preference);
  return asked("cublasLtMatmulPreferenceDestroy");
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const void* from, size_t bytes) {
  if (const cublasStatus_t status = asked("cublasLtMatmulPreferenceSetAttribute")) return status;
  Preference& p = object<Preference>(preference);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof p.workspace) {
    std::memcpy(&p.workspace, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  const std::map<int, uint32_t*> words = {{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &p.reductions},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &p.a}, {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &p.b},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &p.c}, {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &p.d}};
  const auto word = words.find(attribute);
  if (word == words.end() || bytes != sizeof(uint32_t)) return wrong("a preference");
  std::memcpy(word->second, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int most,
    cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  if (const cublasStatus_t status = asked("cublasLtMatmulAlgoGetHeuristic")) return status;
  const Problem p{object<Product>(product), object<Matrix>(a), object<Matrix>(b), object<Matrix>(c), object<Matrix>(d)};
  if (const cublasStatus_t status = check_shapes(p)) return status;
  if (most < 1 || asked("no algorithm")) return CUBLAS_STATUS_SUCCESS;
  const Preference& wish = object<Preference>(preference);
  const Chosen chosen{number_of(p), wish.reductions, wish.a, wish.b, wish.c, wish.d, wish.workspace};
  std::memcpy(&results->algo, &chosen, sizeof chosen);
  results->workspaceSize = wish.workspace;
  results->state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* a, cublasLtMatrixLayout_t a_of,
    const void* b, cublasLtMatrixLayout_t b_of, const void* beta, const void* c, cublasLtMatrixLayout_t c_of, void* d,
    cublasLtMatrixLayout_t d_of, const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (const cublasStatus_t status = asked("cublasLtMatmul")) return status;
  const Problem p{object<Product>(product), object<Matrix>(a_of), object<Matrix>(b_of), object<Matrix>(c_of), object<Matrix>(d_of)};
  Chosen chosen{};
  std::memcpy(&chosen, algorithm, sizeof chosen);
  if (chosen.problem != number_of(p)) return wrong("the algorithm of another problem");
  const cublasStatus_t checks[] = {check_memory(p.a, a, chosen.a), check_memory(p.b, b, chosen.b), check_memory(p.c, c, chosen.c),
      check_memory(p.d, d, chosen.d), check_bias(p), check_workspace(workspace, workspace_bytes, chosen, stream)};
  for (const cublasStatus_t status : checks)
    if (status) return status;
  const bool rounded = p.d.type == CUDA_R_16BF && (chosen.reductions & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
  const Call call{p.product, p.a, p.b, p.c, p.d, a, b, c, d, value(alpha, p.product.scale, 0), value(beta, p.product.scale, 0), rounded};
  ricci_stub_ran();
  const auto work = [=] {
    std::memset(workspace, 0xff, workspace_bytes);  // NaN, not the numbers of other calls
    call();
  };
  return ricci_stub_queue(stream, work) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

}  // extern "C"
