#include "core/cpu/isa.h"

#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace ricci {
namespace {

Isa widest() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  if (avx2 && avx512) return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
  return avx2 ? Isa::avx2 : Isa::baseline;
#else
  return Isa::baseline;
#endif
}

Isa chosen() {
  const char* asked = std::getenv("RICCI_ISA");
  if (!asked || !*asked) return widest();
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16})
    if (std::string_view(asked) == name_of(isa)) return isa < widest() ? isa : widest();
  fail("RICCI_ISA: expected baseline, avx2, avx512 or avx512_bf16, got '{}'", {asked});
}

}  // namespace

Isa cpu_isa() {
  static const Isa isa = chosen();
  return isa;
}

const char* name_of(Isa isa) {
  constexpr const char* names[] = {"baseline", "avx2", "avx512", "avx512_bf16"};
  return names[static_cast<int>(isa)];
}

}  // namespace ricci
