// cuBLASLt, loaded by the first product (cuda/gemm/load_cublas.h). So a program without products starts fast and runs on machines without
// the library.
#pragma once
#include <cublasLt.h>

#include <string>

#include "core/tensor.h"
#include "cuda/gemm/gemm.h"
#include "cuda/toolkit/runtime.h"

namespace ricci::cublas {

constexpr size_t kWorkspace = size_t{32} << 20;  // bytes, as NVIDIA advises for Hopper

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
  cublasLtHandle_t handle = nullptr;  // null if our own kernels compute the products

  Library();
  void* workspace();

 private:
  std::string load(const std::string& file);  // a LoadLibrary (cuda/gemm/load_cublas.h)
  Tensor workspace_;
};

// Exists until the end of the program. Use it only under the lock of cublas.cpp.
Library& library();

// Throws if the call failed, with its status and the product.
void ok(cublasStatus_t status, const char* call, const Gemm& g);
// Reports on stderr that our own kernel computes such products from now on, hundreds of times slower if they are large. Returns false. An
// unsupported epilogue costs little and is reported once per dtype, not per shape.
bool not_possible(const char* why, const Gemm& g);

}  // namespace ricci::cublas
