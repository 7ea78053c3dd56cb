// The arguments of a launch: pointers must be to device memory. A kernel is a struct of bytes, so every word of eight of them is
// looked at: one that is a readable address of this process, but not of device memory, is taken for a pointer to memory of the CPU. The
// driver of a GPU reserves addresses from some gigabytes on, where two small numbers look like a pointer, but they are not readable.
// Sanitizers map so large a part of the address space for themselves that many a number is such an address. Their builds check nothing, and
// neither do compilers that cannot clear padding, whose chance values may look like a pointer (cuda/launch.h).
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "cuda/emulator/block.h"

namespace emu {
namespace {

#if RICCI_ASAN || RICCI_TSAN || !__has_builtin(__builtin_clear_padding)
constexpr bool kIsChecked = false;
#else
constexpr bool kIsChecked = true;
#endif

// Numbers that are no addresses are far from any: below 4 GiB, or not of 47 bits. For the others a system call is asked that reads eight
// bytes before it refuses: what it is asked to do with a set of signals does not exist.
bool is_readable(uintptr_t address) {
  if (address >> 32 == 0 || address >> 47 != 0) return false;
  constexpr int kNothing = ~0;
  constexpr size_t kBytes = 8;
  syscall(SYS_rt_sigprocmask, kNothing, address / kBytes * kBytes, nullptr, kBytes);
  return errno != EFAULT;
}

}  // namespace

void check_arguments(const Launch& launch, const void* kernel, size_t bytes) {
  if (!kIsChecked) return;
  for (size_t offset = 0; offset + sizeof(uintptr_t) <= bytes; offset += sizeof(uintptr_t)) {
    uintptr_t word = 0;
    std::memcpy(&word, static_cast<const char*>(kernel) + offset, sizeof word);
    if (!is_device_memory(word) && is_readable(word))
      ricci::fail("{}: the argument at byte {} of {} is a pointer to memory of the CPU, expected device memory (launched at {})",
          {launch.name, offset, bytes, describe(launch.loc)});
  }
}

}  // namespace emu
