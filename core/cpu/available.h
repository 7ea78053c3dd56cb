// The processors and the memory that this process can use, and a clock. A container often gives less than the machine has. Threads for all
// processors would then wait for each other.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace ricci {

// The processors in the affinity mask (taskset), but no more than the quota of the control groups, rounded up. One and a half processors
// give 2. At least 1.
int available_processors();

// The bytes of memory of the machine or of the control groups, plus the swap of the machine, but no more than `ulimit -v`.
int64_t available_memory();

// The limit of the control group that `list` (/proc/self/cgroup) names below `mount` (/sys/fs/cgroup) and of the groups that contain it, or
// 0 if they have none.
int quota_of_processors(const std::string& list, const std::string& mount);
int64_t limit_of_memory(const std::string& list, const std::string& mount);

// The seconds since a fixed moment in the past.
inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace ricci
