// A run folder belongs to one run at a time.
#include <doctest/doctest.h>

#include <filesystem>
#include <optional>

#include "apps/run/folder/places.h"
#include "core/files/file.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;
namespace fs = std::filesystem;

TEST_CASE("run lock: one at a time, and the folder of a run that never began is removed again") {
  const ScratchFolder scratch;
  const std::string path = scratch / "runs/a";
  {
    const RunLock lock(path);
    CHECK(fs::is_directory(path));
    CHECK(error_of([&] { RunLock second(path); }) == path + ": another ricci-train is at work in it");
    CHECK(fs::is_directory(path));
  }
  CHECK_FALSE(fs::exists(scratch / "runs"));
  fs::create_directory(scratch / "runs");
  { const RunLock lock(path); }
  CHECK(fs::exists(scratch / "runs"));
  CHECK_FALSE(fs::exists(path));
  fs::create_directory(path);
  { const RunLock lock(path); }
  CHECK(fs::exists(path));  // it was there before
}

TEST_CASE("run lock: a run keeps its number, two runs have two") {
  const ScratchFolder scratch;
  const auto number = [&](const std::string& name) {
    RunLock lock(scratch / name);
    lock.begin();
    lock.check();
    return read_text(scratch / (name + "/run_id"));
  };
  const std::string first = number("a");
  CHECK(first.size() == 33);
  CHECK(number("a") == first);
  CHECK(number("b") != first);
}

TEST_CASE("run lock: a folder that was removed, moved or taken over") {
  const ScratchFolder scratch;
  std::optional<RunLock> lock(scratch / "a");
  lock->begin();
  fs::rename(scratch / "a", scratch / "moved");
  CHECK_NOTHROW(lock->check());
  {
    RunLock successor(scratch / "a");
    successor.begin();
    CHECK_NOTHROW(lock->check());
    CHECK_NOTHROW(successor.check());
  }
  fs::remove(scratch / "moved/run_id");
  CHECK(error_of([&] { lock->check(); }) == scratch / "a" + ": its files were removed or replaced while this run was at work in it");
  fs::copy_file(scratch / "a/run_id", scratch / "moved/run_id");
  CHECK(error_of([&] { lock->check(); }) == scratch / "a" + ": its files were removed or replaced while this run was at work in it");
  fs::remove_all(scratch / "moved");
  CHECK(error_of([&] { lock->check(); }) == scratch / "a" + ": the folder was removed while this run was at work in it");
  lock.reset();
  CHECK(fs::exists(scratch / "a/run_id"));
}
