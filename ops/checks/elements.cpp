// The checks of elementwise ops and of shape changes. One check has two overlapping slices: their gradients must be added.
#include "core/philox.h"
#include "ops/checks/checks.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/dropout.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

static void add_shape_checks(std::vector<OpCheck>& all) {
  const auto check = [&](const char* op, const char* variant, const std::vector<CheckInput>& inputs, const CheckedCall& run) {
    all.push_back({op, variant, inputs, run});
  };
  check("reshape", "a view", {normal({2, 3, 5})}, [](CheckInputs x) { return reshape(gelu(x[0]), {5, 6}); });
  check("slice", "the middle of an inner index", {normal({3, 7, 2})}, [](CheckInputs x) { return slice(x[0], 1, 2, 3); });
  check("slice", "leading rows, a view", {normal({5, 3})}, [](CheckInputs x) { return slice(gelu(x[0]), 0, 1, 3); });
  check("slice", "two parts that overlap", {normal({3, 7})}, [](CheckInputs x) {
    return std::array{slice(x[0], -1, 0, 4), slice(x[0], -1, 2, 5)};
  });
  check("concatenate", "along the innermost index", {normal({2, 3}), normal({2, 1}), normal({2, 4})},
      [](const Arg& a, const Arg& b, const Arg& c) {
        return concatenate({a, b, c}, 1);
      });
  check("concatenate", "one part twice", {normal({2, 3, 2}), normal({2, 1, 2})}, [](CheckInputs x) {
    return concatenate({x[0], x[1], x[0]}, 1);
  });
  check("permute", "three indices", {normal({2, 3, 5})}, [](CheckInputs x) { return permute(x[0], {2, 0, 1}); });
  check("permute", "a transposed matrix", {normal({33, 5})}, [](CheckInputs x) { return transpose(x[0], 0, 1); });
  all.push_back(
      {"cast", "to f32 and back", {eighths({3, 5})}, [](CheckInputs x) { return cast(cast(x[0], Dtype::f32), Dtype::f64); }, 0.125});
}

void add_element_checks(std::vector<OpCheck>& all) {
  using Binary = Tensor (*)(const Arg&, const Arg&);
  for (size_t i = 0; i < choices(Activation{}).size(); ++i) {
    const auto op = [f = static_cast<Activation>(i)](const Arg& x) { return activate(f, x); };
    all.push_back({choices(Activation{})[i], "odd size", {normal({3, 7})}, op});
    all.push_back({choices(Activation{})[i], "one element", {normal({1})}, op});
  }
  all.push_back({"sigmoid", "odd size", {normal({3, 7})}, sigmoid});
  for (const auto& [name, op] :
      {std::pair<const char*, Binary>{"add", add}, {"subtract", subtract}, {"multiply", multiply}, {"divide", divide}}) {
    all.push_back({name, "equal shapes", {normal({3, 5}), positive({3, 5})}, op});
    all.push_back({name, "broadcast on the left", {normal({5}), positive({2, 3, 5})}, op});
    all.push_back({name, "broadcast on the right", {normal({2, 3, 5}), positive({3, 1})}, op});
    all.push_back({name, "both broadcast", {normal({3, 1, 2}), positive({1, 4, 2})}, op});
    all.push_back({name, "a scalar", {normal({2, 3}), positive({})}, op});
  }
  all.push_back({"scale", "odd size", {normal({3, 7})}, [](const Arg& x) { return scale(x, -2.5); }});
  all.push_back({"dropout", "a third is dropped", {normal({9, 7})}, [](const Arg& x) {
                   set_random_state({3, 5});
                   return dropout(x, 0.3);
                 }});
  add_shape_checks(all);
}

}  // namespace ricci
