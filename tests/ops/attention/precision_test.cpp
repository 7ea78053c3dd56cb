// The errors of attention in f32 and bf16 against those of the definition in the same precision. bf16_test.cpp tests the kernels of bf16 on
// GPUs.
#include <vector>

#include "tests/ops/attention/cases.h"

using namespace ricci;

TEST_CASE("low precision costs no more than in the definition") {
  on_every_device([](Device device) {
    for (const Case& of : std::vector<Case>{{1, 65, 2, 32}, {1, 100, 1, 64}, {1, 33, 1, 128},
             {1, 70, 2, 24, Visibility::causal(), 0.2, {}, Place::keys_are_values},
             {1, 130, 2, 48, Visibility::causal(), 0.2, {}, Place::keys_are_values},
             {2, 66, 1, 40, Visibility::causal(), 0, {}, Place::all_the_same},
             {2, 90, 2, 33, Visibility::cells(4, 1, 60, CellRule::end), 0.1, {22, 10}, Place::three_tensors, 22}}) {
      check_precision<float>(of, device);
      if (device == Device::cpu) check_precision<bf16>(of, device);
    }
  });
}
