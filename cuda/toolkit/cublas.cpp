// Products on the GPU by cuBLASLt: f32 without TF32, bf16 with sums in f32.
#include <mutex>

#include "cuda/gemm/backends.h"
#include "cuda/toolkit/cublas_plan.h"

namespace ricci {
namespace {

std::mutex lock;  // for the library, its plans and their workspaces

}  // namespace

cublasStatus_t cublas::multiply(const Plan& plan, const Gemm& g, const cublasLtMatmulAlgo_t& algorithm, void* d) {
  Library& l = library();
  const double one_f64 = 1, beta_f64 = g.accumulate ? 1 : 0;
  const float one_f32 = 1, beta_f32 = g.accumulate ? 1 : 0;
  const bool f64 = g.dtype == Dtype::f64;
  const cudaStream_t stream = cuda_build::stream();
  void* const workspace = l.workspace(stream);
  return l.matmul(l.handle, plan.product, f64 ? static_cast<const void*>(&one_f64) : &one_f32, g.b, plan.b, g.a, plan.a,
      f64 ? static_cast<const void*>(&beta_f64) : &beta_f32, g.c, plan.c, d, plan.c, &algorithm, workspace, kWorkspace, stream);
}

void cuda_build::forget_workspace(cudaStream_t stream) {
  const std::lock_guard locked(lock);
  if (cublas::Library* const l = cublas::loaded_library()) l->workspaces.erase(stream);
}

bool gemm_cublas(const Gemm& g) {
  const std::lock_guard locked(lock);
  if (!cublas::library().handle) return false;
  cublas::Plan& plan = cublas::plan_for(g);
  if (!plan.usable) return false;
  cublas::set_pointers(plan, g);
  cuda_build::begin_launch("gemm");
  const cublasStatus_t status = cublas::multiply(plan, g, plan.algorithm, g.c);
  cuda_build::check_launch("gemm", cudaGetLastError());
  plan.usable = status != CUBLAS_STATUS_NOT_SUPPORTED;
  if (!plan.usable) return cublas::not_possible("does not support a product", g);
  cublas::ok(status, "cublasLtMatmul", g);
  return true;
}

}  // namespace ricci
