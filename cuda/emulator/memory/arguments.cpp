// The arguments of a launch: pointers must be to device memory. A kernel is a struct of bytes, so every word of eight of them is
// looked at: one that is an address of this process, but not of device memory, is taken for a pointer to memory of the CPU. Sanitizers map
// so large a part of the address space for themselves that many a number is such an address. Their builds check nothing, and neither do
// compilers that cannot clear padding, whose chance values may look like a pointer (cuda/launch.h).
#include <sys/mman.h>
#include <unistd.h>

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

// Numbers that are no addresses are far from any: below 4 GiB, or not of 47 bits.
bool is_mapped(uintptr_t address) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  if (address >> 32 == 0 || address >> 47 != 0) return false;
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address / page * page), 1, &resident) == 0;  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

void check_arguments(const Launch& launch, const void* kernel, size_t bytes) {
  if (!kIsChecked) return;
  for (size_t offset = 0; offset + sizeof(uintptr_t) <= bytes; offset += sizeof(uintptr_t)) {
    uintptr_t word = 0;
    std::memcpy(&word, static_cast<const char*>(kernel) + offset, sizeof word);
    if (!is_device_memory(word) && is_mapped(word))
      ricci::fail("{}: the argument at byte {} of {} is a pointer to memory of the CPU, expected device memory (launched at {})",
          {launch.name, offset, bytes, describe(launch.loc)});
  }
}

}  // namespace emu
