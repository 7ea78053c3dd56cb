// The algorithm of a product, chosen among the proposals of cuBLASLt: the first, or the fastest (cuda/gemm/cublas/tuned_products.h).
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/error.h"
#include "cuda/device/graph.h"
#include "cuda/gemm/cublas/tuned_products.h"
#include "cuda/toolkit/cublas_plan.h"

namespace ricci::cublas {
namespace {

constexpr int kProposals = 8, kRuns = 3;  // algorithms that are timed, and runs of each; the fastest run counts

// The ways in which the parts of a long sum that several blocks share may be added up (split-K). A part is never rounded to less than f32:
// by default the library may also store or add parts in the type of the result, which is bf16 for a bf16 product.
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

// The algorithms that the library proposes, the most promising first. An empty list if it does not support the product, which it reports
// for an epilogue by one of two statuses.
std::vector<cublasLtMatmulAlgo_t> proposals(const Gemm& g, const Plan& plan, int most) {
  Library& l = library();
  const cublasLtMatmulPreference_t preference = preference_of(g);
  cublasLtMatmulHeuristicResult_t found[kProposals] = {};
  int count = 0;
  const cublasStatus_t status = l.heuristic(l.handle, plan.product, plan.b, plan.a, plan.c, plan.c, preference, most, found, &count);
  ok(l.destroy_preference(preference), "cublasLtMatmulPreferenceDestroy", g);
  const bool fused = g.epilogue != Epilogue::none || g.bias_n;  // a bias is an epilogue of the library, too
  const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_INVALID_VALUE && fused);
  if (!refused) ok(status, "cublasLtMatmulAlgoGetHeuristic", g);
  std::vector<cublasLtMatmulAlgo_t> all;
  for (int i = 0; i < count && !refused; ++i)
    if (found[i].state == CUBLAS_STATUS_SUCCESS) all.push_back(found[i].algo);
  return all;
}

class Timer {
 public:
  Timer() {
    cuda_build::check(cudaEventCreateWithFlags(&begin_, cudaEventDefault), "cudaEventCreate");
    cuda_build::check(cudaEventCreateWithFlags(&end_, cudaEventDefault), "cudaEventCreate");
  }
  Timer(const Timer&) = delete;
  ~Timer() {
    cuda_build::report(cudaEventDestroy(begin_), "end of an event");
    cuda_build::report(cudaEventDestroy(end_), "end of an event");
  }
  void start() { cuda_build::check(cudaEventRecord(begin_, cuda_build::stream()), "cudaEventRecord"); }
  float stop() {
    float milliseconds = 0;
    cuda_build::check(cudaEventRecord(end_, cuda_build::stream()), "cudaEventRecord");
    cuda_build::check(cudaEventSynchronize(end_), "wait for the GPU");
    cuda_build::check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Infinite where the library refuses.
float milliseconds_of(const Plan& plan, const Gemm& g, const cublasLtMatmulAlgo_t& algorithm, void* d) {
  float best = std::numeric_limits<float>::infinity();
  if (multiply(plan, g, algorithm, d) != CUBLAS_STATUS_SUCCESS) return best;
  Timer timer;
  for (int run = 0; run < kRuns; ++run) {
    timer.start();
    ok(multiply(plan, g, algorithm, d), "cublasLtMatmul", g);
    best = std::min(best, timer.stop());
  }
  return best;
}

// The product that follows overwrites c; only where it is to be added to what c has, the runs write elsewhere.
cublasLtMatmulAlgo_t fastest(const Plan& plan, const Gemm& g, const std::vector<cublasLtMatmulAlgo_t>& all) {
  const int64_t elements = (g.batch - 1) * g.c_at.batch_stride + (g.m - 1) * g.c_at.row_stride + g.n;
  const Dtype dtype_of_c = g.c_f32 ? Dtype::f32 : g.dtype;
  const Tensor elsewhere = g.accumulate ? Tensor({elements}, dtype_of_c, Device::cuda) : Tensor();
  void* const d = g.accumulate ? elsewhere.raw() : g.c;
  std::vector<float> times;
  for (const cublasLtMatmulAlgo_t& each : all) times.push_back(milliseconds_of(plan, g, each, d));
  return all[static_cast<size_t>(std::min_element(times.begin(), times.end()) - times.begin())];
}

// "cuBLASLt 130000 on NVIDIA H200"
std::string library_and_gpu() {
  int gpu = 0;
  cudaDeviceProp properties{};
  cuda_build::check(cudaGetDevice(&gpu), "cudaGetDevice");
  cuda_build::check(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
  return "cuBLASLt " + std::to_string(library().version()) + " on " + properties.name;
}

std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const uint64_t word : algorithm.data) text += (text.empty() ? "" : " ") + std::to_string(word);
  return text;
}

// The algorithm that is kept for the product; the first time the fastest. While a graph is recorded nothing can be timed.
cublasLtMatmulAlgo_t kept_algorithm(TunedProducts& tuned, const Plan& plan, const Gemm& g, const std::vector<cublasLtMatmulAlgo_t>& all) {
  tuned.made_by(library_and_gpu());
  std::string product;
  for (const int64_t number : key_of(g)) product += (product.empty() ? "" : " ") + std::to_string(number);
  cublasLtMatmulAlgo_t algorithm = all[0];
  if (const std::string* kept = tuned.find(product)) {
    for (const cublasLtMatmulAlgo_t& proposed : all)
      if (text_of(proposed) == *kept) return proposed;
    fail("{}: '{}' is not among the algorithms that cuBLASLt proposes for this product", {tuned.path(), one_line(*kept, 200)});
  }
  if (!recording_graph()) algorithm = fastest(plan, g, all);
  tuned.add(product, text_of(algorithm));
  return algorithm;
}

}  // namespace

void choose_algorithm(const Gemm& g, Plan& plan) {
  TunedProducts* const tuned = tuned_products();
  const std::vector<cublasLtMatmulAlgo_t> all = proposals(g, plan, tuned ? kProposals : 1);
  plan.usable = !all.empty();
  if (!plan.usable) not_possible("has no algorithm for a product", g);
  else plan.algorithm = tuned ? kept_algorithm(*tuned, plan, g, all) : all[0];
}

}  // namespace ricci::cublas
