// The processors and the memory that this process may use, and the time that passes.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace ricci {

// The number in its affinity mask (taskset, a container's set of processors), and no more than the quota of its control groups gives time
// for: a container with the time of one and a half processors has 2. At least 1.
int available_processors();

// The bytes of memory that the machine and the control groups give, with the swap of the machine, and no more than `ulimit -v`.
int64_t available_memory();

// The limits of control groups, or 0 if there is none: the least among the groups that `list` (/proc/self/cgroup) names below `mount`
// (/sys/fs/cgroup) and the groups that contain them, in versions 1 and 2 of control groups.
int quota_of_processors(const std::string& list, const std::string& mount);
int64_t limit_of_memory(const std::string& list, const std::string& mount);

// The seconds since some moment in the past, the same for the whole program.
inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace ricci
