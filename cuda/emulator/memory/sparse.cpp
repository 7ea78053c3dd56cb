// An access outside of sparse memory causes a processor fault. The signal handler jumps back into the thread that caused the fault
// (siglongjmp). Returning from the handler would repeat the access.
#include "cuda/emulator/memory/sparse.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstring>

#include "cuda/emulator/block.h"
#include "cuda/emulator/memory/device_memory.h"

namespace emu {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
constexpr size_t kGuard = size_t{32} << 30;  // an int can index 2^31 words of 16 bytes
constexpr size_t kCopied = size_t{1} << 20;

struct sigaction handler_before = {};
thread_local uintptr_t fault = 0;

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Restores the previous handler for other faults; it is called when the access is repeated after this handler returns.
void on_fault(int, siginfo_t* info, void*) {
  fault = reinterpret_cast<uintptr_t>(info->si_addr);
  if (current_block && current_block->landing()) {  // outside kernels, the thread could hold the heap's lock
    const DeviceRange nearest = nearest_allocation(fault);
    if (nearest.end && fault + kGuard >= nearest.begin && fault < nearest.end + kGuard)
      siglongjmp(*static_cast<sigjmp_buf*>(current_block->landing()), 1);
  }
  sigaction(SIGSEGV, &handler_before, nullptr);
}

void handle_faults() {
  [[maybe_unused]] static const bool handled = [] {
    struct sigaction handler = {};
    handler.sa_sigaction = on_fault;
    handler.sa_flags = SA_SIGINFO | SA_NODEFER;  // siglongjmp does not restore the signal mask
    return sigaction(SIGSEGV, &handler, &handler_before) == 0;
  }();
}

}  // namespace

void* map_sparse(size_t bytes) {
  handle_faults();
  const size_t all = kGuard + whole_pages(bytes) + kGuard;
  void* mapped = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* memory = static_cast<char*>(mapped) + kGuard;
  madvise(memory, whole_pages(bytes), MADV_NOHUGEPAGE);  // so a written byte uses only one page
  if (mprotect(memory, whole_pages(bytes), PROT_READ | PROT_WRITE) == 0) return memory;
  munmap(mapped, all);
  return nullptr;
}

void unmap_sparse(void* mapped, size_t bytes) { munmap(static_cast<char*>(mapped) - kGuard, kGuard + whole_pages(bytes) + kGuard); }

void zero_sparse(void* p, size_t bytes) {
  char* const begin = static_cast<char*>(p);
  const size_t first = std::min(bytes, (kPage - reinterpret_cast<uintptr_t>(begin) % kPage) % kPage),
               pages = (bytes - first) / kPage * kPage;
  std::memset(begin, 0, first);
  if (pages) madvise(begin + first, pages, MADV_DONTNEED);
  std::memset(begin + first + pages, 0, bytes - first - pages);
}

void copy_sparse(void* target, const void* source, size_t bytes) {
  const size_t each = std::min(bytes, kCopied), last = bytes - each;
  std::memcpy(target, source, each);
  std::memcpy(static_cast<char*>(target) + last, static_cast<const char*>(source) + last, each);
}

uintptr_t run_until_fault(void (*body)(const void*), const void* kernel, void*& landing) {
  struct Reset {
    void*& landing;
    ~Reset() { landing = nullptr; }
  } const reset{landing};
  sigjmp_buf here;
  landing = &here;
  if (sigsetjmp(here, 0) != 0) return fault;
  body(kernel);
  return 0;
}

}  // namespace emu
