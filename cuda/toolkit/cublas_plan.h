// The plan of a product for cuBLASLt: its description, the layouts of its matrices, and the algorithm. It is made once for all products of
// the same shapes, strides and alignments.
#pragma once
#include <array>
#include <string>

#include "cuda/toolkit/cublas_library.h"

namespace ricci::cublas {

struct Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool usable = false;
};

// All that two products with one plan have in common.
using Key = std::array<int64_t, 22>;
Key key_of(const Gemm& g);

// The largest power of two, up to 256, that divides the address: some algorithms ask for more than others.
uint32_t alignment(const void* pointer);
// The alignment that c and the bias added to it both have.
uint32_t alignment_of_sum(const Gemm& g);

Plan& plan_for(const Gemm& g);

// The bias of this product, and the memory beside its result.
void set_pointers(const Plan& plan, const Gemm& g);

// Picks the algorithm. The plan stays unusable where the library has none.
void choose_algorithm(const Gemm& g, Plan& plan);

// Puts the product on the current stream; its result goes to `d`, which is laid out as c.
cublasStatus_t multiply(const Plan& plan, const Gemm& g, const cublasLtMatmulAlgo_t& algorithm, void* d);

}  // namespace ricci::cublas
