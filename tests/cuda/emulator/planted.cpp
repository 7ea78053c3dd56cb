// Bugs that only a sanitizer can see. ThreadSanitizer must report a data race: "blocks", "barrier", "warp" or "copy". AddressSanitizer must
// report use-after-poison, and for kernels the line "emulator: kernel kernel, thread 3 of block 1": "device", "static", "dynamic", "host"
// or "released".
#include "cuda/emulator/queue.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/cuda/emulator/planted_bugs.h"

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  const auto x = DeviceArray<float>::zeros(63), y = DeviceArray<float>::zeros(64);
  if (which == "blocks") launch({4, 64}, planted::BlockRace{y.data()});
  if (which == "barrier") launch({1, 64}, planted::MissingBarrier{y.data()});
  if (which == "copy") launch({1, 64}, planted::CopyWithoutBarrier{y.data(), y.data()});
  if (which == "warp") launch({1, 32}, planted::MissingWarpBarrier{y.data()});
  if (which == "device") launch({2, 64}, planted::DeviceOverrun{x.data(), 63});
  if (which == "static") launch({2, 64}, planted::StaticSharedOverrun{64});
  if (which == "dynamic") launch({2, 64, 256}, planted::DynamicSharedOverrun{64});
  if (which == "released") {
    auto* z = static_cast<float*>(emu::allocate(128));
    emu::options().lazy = true;
    emu::release_in_order(z);
    emu::queue_or_run([=] { launch({2, 64}, planted::DeviceOverrun{z, 0}); });
    emu::synchronize();
  }
  if (which == "host") *x.data() = 1;
}
