// The number of threads where a process may not use all processors. Control groups are folders of their files.
#include "core/cpu/available.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <thread>

#include "tests/data/files.h"

using namespace ricci;
using test_data::ScratchFolder;

namespace {

// Sets the affinity mask of this thread to one processor of it.
class OneProcessor {
 public:
  OneProcessor() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
      if (CPU_ISSET(i, &before_)) CPU_SET(i, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

int quota_of(const ScratchFolder& folder, const std::string& list) {
  folder.write("list", list);
  return quota_of_processors(folder / "list", folder.path());
}

}  // namespace

TEST_CASE("available processors: those of the affinity mask") {
  const int all = available_processors();
  CHECK(all >= 1);
  CHECK(all <= static_cast<int>(std::thread::hardware_concurrency()));
  const OneProcessor one;
  CHECK(available_processors() == 1);
}

TEST_CASE("available processors: the quota of control groups, version 2") {
  const ScratchFolder folder;
  CHECK(quota_of_processors(folder / "none", folder.path()) == 0);
  CHECK(quota_of(folder, "0::/a/b\n") == 0);
  folder.write("a/b/cpu.max", "max 100000\n");
  CHECK(quota_of(folder, "0::/a/b\n") == 0);
  folder.write("a/b/cpu.max", "350000 100000\n");
  CHECK(quota_of(folder, "0::/a/b\n") == 4);
  folder.write("a/cpu.max", "150000 100000\n");
  CHECK(quota_of(folder, "0::/a/b\n") == 2);
  CHECK(quota_of(folder, "0::/a\n") == 2);
  CHECK(quota_of(folder, "0::/\n") == 0);
  folder.write("cpu.max", "20000 100000\n");  // a container, whose list may name a folder of its host
  CHECK(quota_of(folder, "0::/\n") == 1);
  CHECK(quota_of(folder, "0::/host/pod\n") == 1);
  folder.write("cpu.max", "nothing\n");
  CHECK(quota_of(folder, "0::/\n") == 0);
}

TEST_CASE("available processors: the quota of control groups, version 1") {
  const ScratchFolder folder;
  const std::string list = "12:memory:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/a\n";
  CHECK(quota_of(folder, list) == 0);
  folder.write("cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  folder.write("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  CHECK(quota_of(folder, list) == 0);
  folder.write("cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n");
  CHECK(quota_of(folder, list) == 3);
  folder.write("cpu/cpu.cfs_quota_us", "50000\n");
  folder.write("cpu/cpu.cfs_period_us", "50000\n");
  CHECK(quota_of(folder, list) == 1);
  CHECK(quota_of(folder, "3:cpuset:/a\n") == 0);
}
