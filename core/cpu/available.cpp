#include "core/cpu/available.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

namespace ricci {
namespace {

// The lesser of two quotas; 0 means no quota.
int stricter(int a, int b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

// `quota` of the microseconds of every period; less than 1, or no number: no quota.
int processors_for(double quota, double period) {
  constexpr double kMaxProcessors = 1 << 20;
  return quota >= 1 && period >= 1 ? static_cast<int>(std::min(kMaxProcessors, std::ceil(quota / period))) : 0;
}

double number_in(const std::filesystem::path& file) {
  double number = 0;
  std::ifstream(file) >> number;
  return number;
}

// Version 2 writes "max 100000" or "150000 100000".
int quota_of_folder(const std::filesystem::path& folder, bool version_2) {
  if (!version_2) return processors_for(number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us"));
  double quota = 0, period = 0;
  std::ifstream(folder / "cpu.max") >> quota >> period;
  return processors_for(quota, period);
}

// Inside a container the path may be the host's, whose folders are not there; the mount itself then is the container's group.
int quota_of_group(const std::filesystem::path& mount, std::filesystem::path group, bool version_2) {
  int quota = quota_of_folder(mount, version_2);
  for (group = group.relative_path(); !group.empty(); group = group.parent_path())
    quota = stricter(quota, quota_of_folder(mount / group, version_2));
  return quota;
}

int processors_of_mask() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::thread::hardware_concurrency());  // more of them than a mask has bits
}

}  // namespace

// A line is "0::/group" in version 2 and "4:cpu,cpuacct:/group" in version 1, whose folder is called after its controllers.
int quota_of_processors(const std::string& list, const std::string& mount) {
  int quota = 0;
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) quota = stricter(quota, quota_of_group(mount, group, true));
    if (("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    for (const std::string& folder : {controllers, std::string("cpu")})
      quota = stricter(quota, quota_of_group(std::filesystem::path(mount) / folder, group, false));
  }
  return quota;
}

int available_processors() {
  return std::max(1, stricter(processors_of_mask(), quota_of_processors("/proc/self/cgroup", "/sys/fs/cgroup")));
}

}  // namespace ricci
