// A stand-in for NCCL with one rank, a library of its own: what is exchanged with nobody stays as it is.
#include <nccl.h>

#include <cstring>

#include "tests/cuda/stub/libraries/calls.h"

namespace {

ncclResult_t asked(const char* call) { return static_cast<ncclResult_t>(ricci_stub_status(call)); }

ncclResult_t carry(const char* call, const void* from, void* to, size_t bytes, cudaStream_t stream) {
  if (const ncclResult_t status = asked(call)) return status;
  if (!ricci_stub_holds(from, bytes) || !ricci_stub_holds(to, bytes)) return ncclInvalidArgument;
  return ricci_stub_queue(stream, [=] { std::memmove(to, from, bytes); }) ? ncclSuccess : ncclInvalidUsage;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) { return *version = ricci_stub_status("old NCCL") ? 21700 : NCCL_VERSION_CODE, ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 'r', sizeof id->internal);
  return asked("ncclGetUniqueId");
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* ranks, int count, ncclUniqueId id, int rank, ncclConfig_t* config) {
  *ranks = reinterpret_cast<ncclComm_t>(1);
  return count == 1 && rank == 0 && id.internal[0] == 'r' && config->blocking == 0 ? asked("ncclCommInitRankConfig") : ncclInvalidArgument;
}
ncclResult_t ncclGroupStart() { return asked("ncclGroupStart"); }
ncclResult_t ncclGroupEnd() { return asked("ncclGroupEnd"); }
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t, int, ncclComm_t, cudaStream_t stream) {
  return carry("ncclSend", data, const_cast<void*>(data), count, stream);
}
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t, int, ncclComm_t, cudaStream_t stream) {
  return carry("ncclRecv", data, data, count, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t, ncclComm_t, cudaStream_t stream) {
  return carry("ncclAllGather", from, to, count, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t stream) {
  return carry("ncclAllReduce", from, to, count * sizeof(double), stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t, int, ncclComm_t, cudaStream_t stream) {
  return carry("ncclBroadcast", from, to, count, stream);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) { return *state = ncclSuccess, asked("ncclCommGetAsyncError"); }
ncclResult_t ncclCommAbort(ncclComm_t) { return asked("ncclCommAbort"); }
const char* ncclGetErrorString(ncclResult_t) { return "stub error of NCCL"; }

}  // extern "C"
