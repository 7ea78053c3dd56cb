// Device memory for Options::ends: tensors of many gigabytes on a small machine. Pages take memory when they are written and hold zeros
// until then. On both sides are addresses without access, all that an index of 32 bits can reach: an access by an index that has
// overflowed is a fault, which names the kernel's thread. An unsigned index that wraps to a place inside stays unseen.
#pragma once
#include <cstddef>
#include <cstdint>

namespace emu {

// Smaller allocations are ordinary memory, and launches of fewer threads run whole, so that they write all of such an allocation.
inline constexpr size_t kSparseFrom = 1 << 16;  // bytes
inline constexpr uint64_t kWholeThreads = 1 << 16;

void* map_sparse(size_t bytes);  // zeros, aligned to a page; null if there are no addresses left
void unmap_sparse(void* mapped, size_t bytes);
void zero_sparse(void* p, size_t bytes);                           // gives whole pages back
void copy_sparse(void* target, const void* source, size_t bytes);  // the first and the last of it alone: no others were written

// Calls body(kernel). Returns the address of the access outside of all memory that ended the call, or 0 if it returned. What the kernel's
// objects held then is not released. `landing` belongs to the CUDA thread that runs.
uintptr_t run_until_fault(void (*body)(const void*), const void* kernel, void*& landing);

}  // namespace emu
