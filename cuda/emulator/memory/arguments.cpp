// Checks the arguments of a launch. A GPU cannot read the CPU's memory, so pointers must point to device memory. A kernel is a struct of
// bytes, and every word of eight bytes is checked. A readable address of this process outside of device memory is a pointer to CPU memory.
// Addresses that a GPU's driver reserves without memory are not readable; they look like a pair of small numbers. Builds with sanitizers or
// with compilers that cannot clear padding (emu::launch_kernel) check nothing: too many numbers would look like pointers.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "cuda/emulator/fiber.h"
#include "cuda/emulator/launch.h"
#include "cuda/emulator/memory/device_memory.h"
#include "cuda/emulator/report.h"

namespace emu {
namespace {

#if RICCI_ASAN || RICCI_TSAN || !__has_builtin(__builtin_clear_padding)
constexpr bool kIsChecked = false;
#else
constexpr bool kIsChecked = true;
#endif

// Addresses are above 4 GiB and have at most 47 bits. The operating system can tell whether an address is readable: rt_sigprocmask first
// copies eight bytes from it and fails with EFAULT if that is impossible. If the address is readable, the call fails without changes: the
// operation does not exist.
bool is_readable(uintptr_t address) {
  if (address >> 32 == 0 || address >> 47 != 0) return false;
  constexpr int kNoOperation = ~0;
  constexpr size_t kBytes = 8;
  syscall(SYS_rt_sigprocmask, kNoOperation, address / kBytes * kBytes, nullptr, kBytes);
  return errno != EFAULT;
}

}  // namespace

void check_arguments(const Launch& launch, const void* kernel, size_t bytes) {
  if (!kIsChecked) return;
  for (size_t offset = 0; offset + sizeof(uintptr_t) <= bytes; offset += sizeof(uintptr_t)) {
    uintptr_t word = 0;
    std::memcpy(&word, static_cast<const char*>(kernel) + offset, sizeof word);
    if (!is_device_memory(word) && is_readable(word))
      ricci::fail("{}: the argument at byte {} of {} is a pointer to CPU memory, expected device memory (launched at {})",
          {launch.name, offset, bytes, describe(launch.loc)});
  }
}

}  // namespace emu
