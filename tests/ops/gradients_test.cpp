// Every op on every device here: its backward is the derivative of its forward.
#include <doctest/doctest.h>

#include "cuda/device/device.h"
#include "ops/checks/checks.h"

using namespace ricci;

TEST_CASE("every backward is the derivative of its forward") {
  for (Device device : {Device::cpu, Device::cuda_emulated, Device::cuda}) {
    if (!available(device)) {
      MESSAGE("skipped on ", name_of(device), ": ", why_not(device));
      continue;
    }
    for (const OpCheck& check : op_checks()) {
      CAPTURE(std::string(name_of(device)));
      CAPTURE(std::string(check.op));
      CAPTURE(std::string(check.what));
      const GradCheck result = run_check(check, device);
      CAPTURE(result.worst_at);
      CHECK(result.worst <= 1e-6);
      CHECK(result.least_norm > 0);
      bool recorded = false;
      for (const std::string& op : result.ops) recorded |= op == check.op;
      CHECK_MESSAGE(recorded, "the op it is named after was not recorded");
    }
  }
}
