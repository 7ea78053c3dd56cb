// cuBLASLt, loaded when the first product is made (cuda/gemm/cublas/load_cublas.h), so that a program that makes none starts fast and runs
// where the library is not installed.
#pragma once
#include <cublasLt.h>

#include <map>
#include <string>

#include "core/tensor.h"
#include "cuda/gemm/gemm.h"
#include "cuda/toolkit/runtime.h"

namespace ricci::cublas {

constexpr size_t kWorkspace = size_t{32} << 20;  // bytes; what NVIDIA advises for the Hopper generation

struct Library {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulDescCreate) describe_product;
  decltype(&cublasLtMatmulDescSetAttribute) set_product;
  decltype(&cublasLtMatrixLayoutCreate) describe_matrix;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_matrix;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  cublasLtHandle_t handle = nullptr;          // null if products take our own kernels
  std::map<cudaStream_t, Tensor> workspaces;  // products of two streams may run at the same time

  Library();
  void* workspace(cudaStream_t stream);

 private:
  std::string load(const std::string& file);  // returns the reason why it is not loaded, or an empty text
};

// Lives to the end of the program; all of it is used under the lock of cublas.cpp.
Library& library();
Library* loaded_library();  // null if nothing was loaded yet

// Error: what the call returned, with the product.
void ok(cublasStatus_t status, const char* call, const Gemm& g);
// Returns false, and reports on stderr that from now on our own kernel computes such products. It is hundreds of times slower for large
// ones, so the line explains the time. A refused epilogue costs little, so its reason is reported once for a dtype and not for each shape.
bool not_possible(const char* why, const Gemm& g);

}  // namespace ricci::cublas
