// Reads container limits from control group files (version 2) and detects the processor's instruction sets.
#include "core/cpu/available.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/cpu/isa.h"

namespace ricci {
namespace {

namespace fs = std::filesystem;

constexpr const char *kGroups = "/proc/self/cgroup", *kMount = "/sys/fs/cgroup";

// The stricter of two limits. 0 means no limit.
double stricter(double a, double b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

// cpu.max contains the processor time per period and the period, in microseconds: "150000 100000". "max 100000" means no limit.
double processors_of_group(const fs::path& folder) {
  constexpr double kMaxProcessors = 1 << 20;
  double quota = 0, period = 0;
  std::ifstream(folder / "cpu.max") >> quota >> period;
  return quota >= 1 && period >= 1 ? std::min(kMaxProcessors, std::ceil(quota / period)) : 0;
}

double memory_of_group(const fs::path& folder) {
  double bytes = 0;  // stays 0 for "max"
  std::ifstream(folder / "memory.max") >> bytes;
  return bytes;
}

// The strictest limit of the group in the line "0::/group" and of the groups that contain it. Inside a container, this path may exist only
// on the host. The container's group is then the mount itself.
double limit_of_groups(double (*limit_of)(const fs::path& folder), const std::string& list, const std::string& mount) {
  double limit = limit_of(mount);
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("0::")) continue;
    for (auto group = fs::path(line.substr(3)).relative_path(); !group.empty(); group = group.parent_path())
      limit = stricter(limit, limit_of(fs::path(mount) / group));
  }
  return limit;
}

int processors_of_mask() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::thread::hardware_concurrency());  // the machine has more processors than a mask has bits
}

#if defined(__x86_64__)
// True if the processor has AMX tiles for bf16 and the system permits this process to use them. Requests this permission; only then does
// the system reserve 8 KB per thread for tiles.
bool has_tiles() {
  constexpr unsigned kTilesOfBf16 = 1u << 24 | 1u << 22;      // bits of edx in CPUID leaf 7
  constexpr long kAskForPermission = 0x1023, kTileData = 18;  // arch_prctl's ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & kTilesOfBf16) == kTilesOfBf16 &&
         ::syscall(SYS_arch_prctl, kAskForPermission, kTileData) == 0;
}
#endif

Isa widest_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  if (avx2 && avx512 && __builtin_cpu_supports("avx512bf16")) return has_tiles() ? Isa::amx : Isa::avx512_bf16;
  if (avx2 && avx512) return Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::baseline;
}

}  // namespace

int quota_of_processors(const std::string& list, const std::string& mount) {
  return static_cast<int>(limit_of_groups(processors_of_group, list, mount));
}

int64_t limit_of_memory(const std::string& list, const std::string& mount) {
  return static_cast<int64_t>(std::min(0x1p60, limit_of_groups(memory_of_group, list, mount)));
}

int available_processors() { return static_cast<int>(std::max(1.0, stricter(processors_of_mask(), quota_of_processors(kGroups, kMount)))); }

int64_t available_memory() {
  struct sysinfo machine = {};
  ::sysinfo(&machine);
  const double unit = machine.mem_unit, groups = static_cast<double>(limit_of_memory(kGroups, kMount)),
               memory = stricter(unit * static_cast<double>(machine.totalram), groups) + unit * static_cast<double>(machine.totalswap);
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return static_cast<int64_t>(memory);
  // ulimit -v limits the address space. Code, libraries and mapped files use many addresses but little memory.
  double addresses = 0, resident = 0;  // pages
  std::ifstream("/proc/self/statm") >> addresses >> resident;
  const double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  return static_cast<int64_t>(std::min(memory, std::max(page, static_cast<double>(limit.rlim_cur) - page * (addresses - resident))));
}

Isa cpu_isa() {
  static const Isa isa = [] {
    const char* asked = std::getenv("RICCI_ISA");
    return asked && *asked ? std::min(choice_of<Isa>("RICCI_ISA", asked), widest_isa()) : widest_isa();
  }();
  return isa;
}

}  // namespace ricci
