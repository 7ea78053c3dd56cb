// Attention in f32 and bf16 is compared with the definition carried out in the same precision: both with the exact values.
#include <vector>

#include "tests/ops/attention/low_precision.h"

using namespace ricci;

namespace {

template <class S> void check_low_precision(const Case& of, Device device) {
  const std::string dtype = name_of(dtype_of<S>);
  CAPTURE(dtype);
  CAPTURE(of.text());
  const std::vector<Tensor> inputs = as(of.inputs(), dtype_of<S>, device);
  const Tensor dy = to(convert(of.dy(), dtype_of<S>), device);
  check_errors<S>(of, inputs, dy, run(attention, of, inputs, dy));
}

}  // namespace

TEST_CASE("low precision costs no more than in the definition") {
  on_every_device([](Device device) {
    const std::vector<Case> cases = {
        {1, 65, 2, 32},
        {1, 100, 1, 64},
        {1, 33, 1, 128},
        {1, 70, 2, 24, Visibility::causal(), 0.2, {}, Place::keys_are_values},
        {1, 130, 2, 48, Visibility::causal(), 0.2, {}, Place::keys_are_values},
        {2, 66, 1, 40, Visibility::causal(), 0, {}, Place::all_the_same},
        {2, 90, 2, 33, Visibility::cells(4, 1, 60, CellRule::end), 0.1, {22, 10}, Place::three_tensors, 22},
        {2, 90, 2, 24, Visibility::cells(4, 1, 60, CellRule::end), 0, {22, 10}, Place::three_tensors, 22},
    };
    for (const Case& of : cases) {
      check_low_precision<float>(of, device);
      check_low_precision<bf16>(of, device);
    }
  });
}
