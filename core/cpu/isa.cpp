#include "core/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdlib>

namespace ricci {
namespace {

#if defined(__x86_64__)
// True if the processor has the tiles of AMX for bf16 and the system lets this process use them: it keeps their 8 KB for a thread only
// then.
bool has_tiles() {
  constexpr unsigned kTilesOfBf16 = 1u << 24 | 1u << 22;      // in edx, leaf 7
  constexpr long kAskForPermission = 0x1023, kTileData = 18;  // arch_prctl's ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & kTilesOfBf16) == kTilesOfBf16 &&
         ::syscall(SYS_arch_prctl, kAskForPermission, kTileData) == 0;
}
#endif

Isa widest() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  if (avx2 && avx512 && __builtin_cpu_supports("avx512bf16")) return has_tiles() ? Isa::amx : Isa::avx512_bf16;
  if (avx2 && avx512) return Isa::avx512;
  return avx2 ? Isa::avx2 : Isa::baseline;
#else
  return Isa::baseline;
#endif
}

Isa chosen() {
  const char* asked = std::getenv("RICCI_ISA");
  return asked && *asked ? std::min(choice_of<Isa>("RICCI_ISA", asked), widest()) : widest();
}

}  // namespace

Isa cpu_isa() {
  static const Isa isa = chosen();
  return isa;
}

}  // namespace ricci
