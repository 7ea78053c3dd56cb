#include "core/cpu/available.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

namespace ricci {
namespace {

constexpr const char *kGroups = "/proc/self/cgroup", *kMount = "/sys/fs/cgroup";

// The lesser of two limits; 0 means no limit.
double stricter(double a, double b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

// 0 for "max" and the like, and if there is no such file.
double number_in(const std::filesystem::path& file) {
  double number = 0;
  std::ifstream(file) >> number;
  return number;
}

using LimitOfFolder = double(const std::filesystem::path& folder);

// Version 2 of control groups has one file with "150000 100000", the microseconds in every period, or "max 100000".
double processors_of_folder(const std::filesystem::path& folder) {
  constexpr double kMaxProcessors = 1 << 20;
  double quota = number_in(folder / "cpu.cfs_quota_us"), period = number_in(folder / "cpu.cfs_period_us");
  std::ifstream version_2(folder / "cpu.max");
  if (version_2) version_2 >> quota >> period;
  return quota >= 1 && period >= 1 ? std::min(kMaxProcessors, std::ceil(quota / period)) : 0;
}

double memory_of_folder(const std::filesystem::path& folder) {
  return std::max(number_in(folder / "memory.limit_in_bytes"), number_in(folder / "memory.max"));  // one of them is there
}

// A line is "0::/group" in version 2 and "4:cpu,cpuacct:/group" in version 1, whose folder is called after its controllers. Inside a
// container the path may be the host's, whose folders are not there; the mount itself then is the container's group.
double limit_of_groups(LimitOfFolder* limit_of, const std::string& controller, const std::string& list, const std::string& mount) {
  double limit = 0;
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (!controllers.empty() && ("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
    for (const std::string& name : {controllers, controllers.empty() ? "" : controller}) {
      const std::filesystem::path folder = std::filesystem::path(mount) / name;
      limit = stricter(limit, limit_of(folder));
      for (auto group = std::filesystem::path(path).relative_path(); !group.empty(); group = group.parent_path())
        limit = stricter(limit, limit_of(folder / group));
    }
  }
  return limit;
}

int processors_of_mask() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::thread::hardware_concurrency());  // more of them than a mask has bits
}

}  // namespace

int quota_of_processors(const std::string& list, const std::string& mount) {
  return static_cast<int>(limit_of_groups(processors_of_folder, "cpu", list, mount));
}

int64_t limit_of_memory(const std::string& list, const std::string& mount) {
  constexpr double kMost = 0x1p60;  // version 1 writes a number near 2^63 where there is no limit
  return static_cast<int64_t>(std::min(kMost, limit_of_groups(memory_of_folder, "memory", list, mount)));
}

int available_processors() { return static_cast<int>(std::max(1.0, stricter(processors_of_mask(), quota_of_processors(kGroups, kMount)))); }

// A limit of the address space also counts code, libraries and files, although hardly any of them is in memory.
int64_t available_memory() {
  struct sysinfo machine = {};
  ::sysinfo(&machine);
  const double unit = machine.mem_unit, groups = static_cast<double>(limit_of_memory(kGroups, kMount)),
               memory = stricter(unit * static_cast<double>(machine.totalram), groups) + unit * static_cast<double>(machine.totalswap);
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return static_cast<int64_t>(memory);
  double addresses = 0, resident = 0;  // pages
  std::ifstream("/proc/self/statm") >> addresses >> resident;
  const double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  return static_cast<int64_t>(std::min(memory, std::max(page, static_cast<double>(limit.rlim_cur) - page * (addresses - resident))));
}

}  // namespace ricci
