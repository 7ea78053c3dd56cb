#include "cuda/launch.h"

#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci {

void launch_without_device(const char* name, Device device) {
  if (device == Device::cpu) fail("{}: kernels do not run on the cpu", {name});
  fail("{}: device {}: {}", {name, name_of(device), why_not(device)});
}

}  // namespace ricci
