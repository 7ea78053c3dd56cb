// Loads cuBLASLt by name. A program that is linked with the library would not start without it.
#include "cuda/toolkit/cublas_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <set>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "cuda/gemm/load_cublas.h"

namespace ricci::cublas {
namespace {

// Describes a product: "bf16, batch 1, m 8, n 4, k 3, bias".
std::string text_of(const Gemm& g) {
  return format_message("{}, batch {}, m {}, n {}, k {}{}{}{}",
      {name_of(g.dtype), g.batch, g.m, g.n, g.k, g.bias_n ? ", bias" : "", g.c_f32 ? ", c in f32" : "", g.row_sums_m ? ", row sums" : ""});
}

}  // namespace

Library::Library() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  load_cublas({name, RICCI_CUDA_LIBRARIES "/" + name}, [this](const std::string& file) { return load(file); });
}

std::string Library::load(const std::string& name) {
  std::string missing;
  void* const file = cuda_build::open_library(name, missing);
  if (!file) return missing;
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

void* Library::workspace() {
  if (!workspace_) workspace_ = Tensor({static_cast<int64_t>(kWorkspace) / size_of(Dtype::f32)}, Dtype::f32, Device::cuda);
  return workspace_.raw();
}

Library& library() {
  static Library& loaded = *new Library;  // outlives every tensor
  return loaded;
}

void ok(cublasStatus_t status, const char* call, const Gemm& g) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("gemm: {} reports status {} for {}", {call, static_cast<int>(status), text_of(g)});
}

bool not_possible(const char* why, const Gemm& g) {
  static std::set<std::pair<std::string, Dtype>> reported;
  const bool plain = !g.row_sums_m;
  if (!plain && !reported.emplace(why, g.dtype).second) return false;
  const char* const instead = plain ? "our own, slower kernel computes it" : "our own kernel adds up the rows after such products";
  std::fprintf(stderr, "gemm: cuBLASLt %s (%s); %s\n", why, text_of(g).c_str(), instead);
  return false;
}

}  // namespace ricci::cublas
