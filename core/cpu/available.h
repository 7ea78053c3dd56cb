// The processors and the memory that this process can use, and a clock. A container often allows less than the machine has. With a thread
// for every processor of the machine, threads would then wait for each other.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace ricci {

// The number of processors in the affinity mask (taskset), but at most the quota of the control groups, rounded up: a quota of 1.5 gives 2.
// The result is at least 1.
int available_processors();

// The memory of the machine or its control groups in bytes, plus the machine's swap, but at most `ulimit -v`.
int64_t available_memory();

// The strictest limit of the control group that `list` (/proc/self/cgroup) names below `mount` (/sys/fs/cgroup) and of the groups that
// contain it, or 0 if they have no limit.
int quota_of_processors(const std::string& list, const std::string& mount);
int64_t limit_of_memory(const std::string& list, const std::string& mount);

// The seconds since a fixed moment in the past.
inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace ricci
