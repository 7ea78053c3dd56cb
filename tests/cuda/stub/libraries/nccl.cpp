// A stand-in for NCCL, a separate library. All ranks have the same numbers, so their sum is a product.
#include <nccl.h>

#include <cstring>
#include <functional>
#include <vector>

#include "core/dtype.h"
#include "tests/cuda/stub/libraries/calls.h"

namespace {

int joined = 0;  // ranks
bool in_group = false;
std::vector<std::function<bool()>> group;  // it begins when it ends

ncclResult_t status_of(const char* call) { return static_cast<ncclResult_t>(ricci_stub_status(call)); }

template <class T> ncclResult_t add_up(const void* from, void* to, size_t count, cudaStream_t stream) {
  if (!ricci_stub_holds(from, count * sizeof(T)) || from != to) return ncclInvalidArgument;
  if (!in_group) return ncclInvalidUsage;
  group.push_back([=] {
    return ricci_stub_queue(stream, [=] {
      for (size_t i = 0; i < count; ++i) {
        T& number = static_cast<T*>(to)[i];
        number = T(static_cast<T>(static_cast<float>(joined)) * number);
      }
    });
  });
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = ricci_stub_status("old NCCL") ? 2804 : NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 'r', sizeof id->internal);
  return status_of("ncclGetUniqueId");
}
ncclResult_t ncclCommInitRank(ncclComm_t* ranks, int count, ncclUniqueId id, int rank) {
  for (const char c : id.internal)
    if (c != 'r') return ncclInvalidArgument;
  if (rank != 0) return ncclInvalidArgument;
  joined = count;
  *ranks = reinterpret_cast<ncclComm_t>(&joined);
  return status_of("ncclCommInitRank");
}
ncclResult_t ncclAllReduce(
    const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t ranks, cudaStream_t stream) {
  if (ranks != reinterpret_cast<ncclComm_t>(&joined) || op != ncclSum) return ncclInvalidArgument;
  if (const ncclResult_t status = status_of("ncclAllReduce")) return status;
  if (type == ncclFloat32) return add_up<float>(from, to, count, stream);
  if (type == ncclFloat64) return add_up<double>(from, to, count, stream);
  if (type == ncclBfloat16) return add_up<ricci::bf16>(from, to, count, stream);
  return ncclInvalidArgument;
}
ncclResult_t ncclGroupStart() {
  in_group = true;
  group.clear();
  return status_of("ncclGroupStart");
}
ncclResult_t ncclGroupEnd() {
  in_group = false;
  if (const ncclResult_t status = status_of("ncclGroupEnd")) return status;
  for (const auto& begin : group)
    if (!begin()) return ncclInvalidUsage;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t error) { return error == ncclInvalidArgument ? "invalid argument" : "stub error of NCCL"; }

}  // extern "C"
