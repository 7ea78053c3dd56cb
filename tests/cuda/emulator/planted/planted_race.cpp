// Runs one kernel with a data race, "blocks" (default), "barrier", "warp" or "copy". For ThreadSanitizer builds: it must report.
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/cuda/emulator/planted_bugs.h"

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "blocks";
  const auto y = DeviceArray<float>::zeros(64);
  if (which == "blocks") launch({4, 64}, planted::BlockRace{y.data()});
  if (which == "barrier") launch({1, 64}, planted::MissingBarrier{y.data()});
  if (which == "copy") launch({1, 64}, planted::CopyWithoutBarrier{y.data(), y.data()});
  if (which == "warp") launch({1, 32}, planted::MissingWarpBarrier{y.data()});
}
