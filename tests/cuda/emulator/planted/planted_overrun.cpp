// Touches memory it must not, "device" (default), "static", "dynamic", "host" or "released". For AddressSanitizer builds: it must
// report use-after-poison, and for kernels the line "emulator: kernel kernel, thread 3 of block 1".
#include "cuda/emulator/streams.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/cuda/emulator/planted_bugs.h"

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "device";
  const auto x = DeviceArray<float>::zeros(63);
  if (which == "device") launch({2, 64}, planted::DeviceOverrun{x.data(), 63});
  if (which == "static") launch({2, 64}, planted::StaticSharedOverrun{64});
  if (which == "dynamic") launch({2, 64, 256}, planted::DynamicSharedOverrun{64});
  if (which == "released") {
    auto* y = static_cast<float*>(emu::allocate(128));
    emu::Stream side;
    emu::use_stream(&side);
    emu::queue_or_run([=] { launch({2, 64}, planted::DeviceOverrun{y, 0}); });
    emu::use_stream(nullptr);
    emu::release_in_order(y);
    emu::synchronize();
  }
  if (which == "host") *x.data() = 1;
}
