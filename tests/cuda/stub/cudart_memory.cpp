// The stub of the runtime: the memory pool, copies, graphs.
#include <cstdlib>

#include "tests/cuda/stub/state.h"

using namespace stub;

namespace {

// The allocation that holds the range; null if none holds all of it.
const Allocation* holder_of(const void* data, size_t bytes) {
  const auto at = static_cast<const char*>(data);
  auto next = state().allocations.upper_bound(at);
  if (next == state().allocations.begin()) return nullptr;
  const auto& [begin, allocation] = *std::prev(next);
  return static_cast<size_t>(at - begin) + bytes <= allocation.bytes ? &allocation : nullptr;
}

// Uses a free block that is large enough; if none is, the pool asks the system. Null: no memory.
size_t take_piece(size_t bytes) {
  if (const auto piece = state().pieces.lower_bound(bytes); piece != state().pieces.end()) return state().pieces.extract(piece).value();
  if (state().held + bytes > state().limit) return 0;
  state().held += bytes;
  return bytes;
}

cudaError_t check_copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = kind != cudaMemcpyDeviceToHost, from_device = kind != cudaMemcpyHostToDevice;
  if ((holder_of(to, bytes) != nullptr) != to_device || (holder_of(from, bytes) != nullptr) != from_device)
    return wrong(cudaErrorInvalidValue, "a copy of memory that is not where its kind says, or longer than its allocation");
  return to_device && from_device ? cudaSuccess : not_while_capturing("a copy from or to ordinary memory");
}

}  // namespace

bool ricci_stub_holds(const void* data, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  return holder_of(data, bytes) != nullptr;
}

uint64_t ricci_stub_allocation(const void* data) {
  const std::lock_guard lock(state().mutex);
  const Allocation* found = holder_of(data, 1);
  return found ? found->number : 0;
}

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return call("cudaDeviceGetDefaultMemPool", [&] { return *pool = reinterpret_cast<cudaMemPool_t>(size_t(device) + 1), cudaSuccess; });
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void*) {
  return call("cudaMemPoolSetAttribute",
      [&] { return attribute == cudaMemPoolAttrReleaseThreshold ? cudaSuccess : wrong(cudaErrorInvalidValue, "a pool's attribute"); });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolGetAttribute", [&] {
    if (attribute != cudaMemPoolAttrReservedMemCurrent) return wrong(cudaErrorInvalidValue, "a pool's attribute");
    return *static_cast<uint64_t*>(value) = state().held, cudaSuccess;
  });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
  return call("cudaMemPoolTrimTo", [] {
    for (const size_t piece : state().pieces) state().held -= piece;
    return state().pieces.clear(), cudaSuccess;
  });
}
cudaError_t cudaMallocFromPoolAsync(void** data, size_t bytes, cudaMemPool_t, cudaStream_t stream) {
  return call("cudaMallocFromPoolAsync", [&] {
    if (const cudaError_t error = not_while_capturing("cudaMallocFromPoolAsync")) return error;
    if (!may_be_used(stream)) return cudaErrorInvalidResourceHandle;
    const size_t piece = take_piece(bytes);
    if (!piece) return cudaErrorMemoryAllocation;
    *data = emu::allocate(bytes);
    state().allocations[static_cast<char*>(*data)] = {bytes, piece, state().next_number++};
    return cudaSuccess;
  });
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  return call("cudaFreeAsync", [&] {
    if (const cudaError_t error = not_while_capturing("cudaFreeAsync")) return error;
    if (!may_be_used(stream)) return cudaErrorInvalidResourceHandle;
    const auto found = state().allocations.find(static_cast<char*>(data));
    if (found == state().allocations.end()) return wrong(cudaErrorInvalidValue, "a release of memory that was not allocated");
    const size_t piece = found->second.piece;
    state().allocations.erase(found);
    const Lazily lazily;
    emu::release_in_order(data);
    queue([piece] { state().pieces.insert(piece); });
    return cudaSuccess;
  });
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  return call("cudaHostAlloc", [&] { return *data = std::malloc(bytes), cudaSuccess; });
}
// Only the second GPU has memory, and only it is used.
cudaError_t cudaMemGetInfo(size_t* free, size_t* all) {
  return call("cudaMemGetInfo", [&] { return *all = size_t{80} << 30, *free = gpu == 1 ? size_t{40} << 30 : 0, cudaSuccess; });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] {
    if (!may_be_used(stream)) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = check_copy(to, from, bytes, kind)) return error;
    queue([=] {
      if (kind == cudaMemcpyHostToDevice) emu::copy_in(to, from, bytes);
      else if (kind == cudaMemcpyDeviceToHost) emu::copy_out(to, from, bytes);
      else emu::copy_within(to, from, bytes);
    });
    return cudaSuccess;
  });
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] {
    if (!may_be_used(stream)) return cudaErrorInvalidResourceHandle;
    if (value != 0 || !holder_of(data, bytes)) return wrong(cudaErrorInvalidValue, "memory that is not in one allocation is set");
    queue([=] { emu::fill_zero(data, bytes); });
    return cudaSuccess;
  });
}

// ---- Graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&] {
    if (!may_be_used(stream)) return cudaErrorInvalidResourceHandle;
    if (captured || mode != cudaStreamCaptureModeThreadLocal) return wrong(cudaErrorIllegalState, "a capture within another, or its mode");
    captured = stream, capture_spoilt = false;
    return emu::begin_recording(), cudaSuccess;
  });
}
// A capture is over even if its end fails.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  emu::Recorded all;
  const bool begun = captured && captured == stream;
  if (begun) all = emu::end_recording();
  if (begun) captured = nullptr;
  return call("cudaStreamEndCapture", [&] {
    if (!begun) return wrong(cudaErrorIllegalState, "the end of a capture that has not begun");
    if (capture_spoilt) return cudaErrorStreamCaptureInvalidated;
    return *graph = new CUgraph_st{std::move(all)}, cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiateWithFlags",
      [&] { return *ready = new CUgraphExec_st{std::make_shared<emu::Recorded>(graph->work)}, cudaSuccess; });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [&] { return delete graph, cudaSuccess; });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&] {
    if (!may_be_used(stream)) return cudaErrorInvalidResourceHandle;
    for (size_t i = 0; i < graph->work->size(); ++i) queue([work = graph->work, i] { (*work)[i](); });
    return cudaSuccess;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return call("cudaGraphExecDestroy", [&] { return delete graph, cudaSuccess; });
}

}  // extern "C"
