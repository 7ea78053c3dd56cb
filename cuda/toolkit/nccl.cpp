// NCCL sums tensors across GPUs. The first call loads it. Only this file includes nccl.h.
#include "core/error.h"
#include "cuda/ranks/ranks.h"
#include "cuda/toolkit/runtime.h"

#if __has_include(<nccl.h>)
#include <dlfcn.h>
#include <nccl.h>

namespace ricci {
namespace {

void* load() {
  std::string tried;
  for (const char* file : {"libnccl.so.2", RICCI_CUDA_LIBRARIES "/libnccl.so.2"}) {
    std::string reason;
    if (void* const library = cuda_build::open_library(file, reason)) return library;
    tried += (tried.empty() ? "" : ", ") + reason;
  }
  fail("NCCL cannot be loaded from {}; set LD_LIBRARY_PATH to its folder", {tried});
}

void* symbol(const char* name) {
  static void* const library = load();
  void* const found = dlsym(library, name);
  if (!found) fail("NCCL lacks {}; version 2.10 or later is needed", {name});
  return found;
}

// A function of NCCL, with its type.
#define NCCL(name) reinterpret_cast<decltype(&name)>(symbol(#name))

void check(ncclResult_t result, const char* call) {
  if (result != ncclSuccess) fail("NCCL: {} in {}; NCCL_DEBUG=INFO prints details", {NCCL(ncclGetErrorString)(result), call});
}

// Rank 0 makes an id; the other ranks join by this id.
ncclComm_t join(Ranks& ranks) {
  ncclUniqueId id{};
  if (ranks.rank() == 0) check(NCCL(ncclGetUniqueId)(&id), "ncclGetUniqueId");
  ranks.from_first(std::string(id.internal, sizeof id.internal)).copy(id.internal, sizeof id.internal);
  ncclComm_t joined = nullptr;
  check(NCCL(ncclCommInitRank)(&joined, ranks.count(), id, ranks.rank()), "ncclCommInitRank");
  return joined;
}

}  // namespace

std::string nccl_version() {
  int number = 0;  // 22809 for 2.28.9
  check(NCCL(ncclGetVersion)(&number), "ncclGetVersion");
  if (number < 21000) fail("NCCL is older than 2.10, the first version that sums bf16");
  return format_message("NCCL {}.{}.{}", {number / 10000, number / 100 % 100, number % 100});
}

void sum_by_nccl(Ranks& ranks, const std::vector<Tensor>& tensors) {
  const cudaStream_t stream = cuda_build::stream();  // this call selects the GPU that joins
  static const ncclComm_t joined = join(ranks);
  check(NCCL(ncclGroupStart)(), "ncclGroupStart");  // a group is one launch, so its sums share the latency
  for (const Tensor& t : tensors) {
    ncclDataType_t type = t.dtype() == Dtype::f64 ? ncclFloat64 : ncclFloat32;
    if (t.dtype() == Dtype::bf16) type = ncclBfloat16;
    check(NCCL(ncclAllReduce)(t.raw(), t.raw(), static_cast<size_t>(t.size()), type, ncclSum, joined, stream), "ncclAllReduce");
  }
  check(NCCL(ncclGroupEnd)(), "ncclGroupEnd");
}

}  // namespace ricci

#else

std::string ricci::nccl_version() { fail("this program was built without NCCL's header; install NCCL and build again"); }
void ricci::sum_by_nccl(Ranks&, const std::vector<Tensor>&) { nccl_version(); }

#endif
