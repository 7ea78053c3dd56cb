// Device memory for Options::ends: tensors of many gigabytes on a small machine, to find 32-bit indices that overflow. Pages use no memory
// until they are written, and read as zeros until then. The addresses on both sides are inaccessible, as far as a 32-bit index can reach.
// An access with an overflowed index causes a fault, and the error names the thread. An unsigned index that wraps to an address inside the
// tensor is not detected.
#pragma once
#include <cstddef>
#include <cstdint>

namespace emu {

// Smaller allocations are ordinary memory. Small launches run all their blocks, so they write all of such an allocation.
inline constexpr size_t kSparseFrom = 1 << 16;  // bytes
inline constexpr uint64_t kWholeThreads = 1 << 16;

void* map_sparse(size_t bytes);  // zeros, aligned to a page; null if no addresses are free
void unmap_sparse(void* mapped, size_t bytes);
void zero_sparse(void* p, size_t bytes);                           // returns full pages to the system
void copy_sparse(void* target, const void* source, size_t bytes);  // copies only the first and the last MiB; nothing else was written

// Calls body(kernel). Returns the address of an access outside of all memory, or 0 if the call returned. After such an access the kernel's
// objects are not destroyed. `landing` belongs to the running CUDA thread.
uintptr_t run_until_fault(void (*body)(const void*), const void* kernel, void*& landing);

}  // namespace emu
