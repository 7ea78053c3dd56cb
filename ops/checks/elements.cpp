#include "autograd/random.h"
#include "ops/checks/checks_list.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/dropout.h"
#include "ops/elements/gelu.h"
#include "ops/elements/relu.h"
#include "ops/elements/sigmoid.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {
namespace {

using Unary = Tensor (*)(const Arg&);
using Binary = Tensor (*)(const Arg&, const Arg&);

CheckedFunction of(Unary op) {
  return [op](CheckInputs x) -> CheckOutputs { return {op(x[0])}; };
}
CheckedFunction of(Binary op) {
  return [op](CheckInputs x) -> CheckOutputs { return {op(x[0], x[1])}; };
}

void add_shape_checks(std::vector<OpCheck>& all) {
  all.push_back({"reshape", "a view", {normal({2, 3, 5})}, [](CheckInputs x) -> CheckOutputs { return {reshape(gelu(x[0]), {5, 6})}; }});
  all.push_back(
      {"slice", "the middle of an inner index", {normal({3, 7, 2})}, [](CheckInputs x) -> CheckOutputs { return {slice(x[0], 1, 2, 3)}; }});
  all.push_back(
      {"slice", "leading rows, a view", {normal({5, 3})}, [](CheckInputs x) -> CheckOutputs { return {slice(gelu(x[0]), 0, 1, 3)}; }});
  all.push_back({"slice", "two parts that overlap", {normal({3, 7})}, [](CheckInputs x) -> CheckOutputs {
                   return {slice(x[0], -1, 0, 4), slice(x[0], -1, 2, 5)};
                 }});
  all.push_back(
      {"concatenate", "along the innermost index", {normal({2, 3}), normal({2, 1}), normal({2, 4})}, [](CheckInputs x) -> CheckOutputs {
         return {concatenate({x[0], x[1], x[2]}, 1)};
       }});
  all.push_back({"concatenate", "one part twice", {normal({2, 3, 2}), normal({2, 1, 2})}, [](CheckInputs x) -> CheckOutputs {
                   return {concatenate({x[0], x[1], x[0]}, 1)};
                 }});
  all.push_back({"permute", "three indices", {normal({2, 3, 5})}, [](CheckInputs x) -> CheckOutputs {
                   return {permute(x[0], {2, 0, 1})};
                 }});
  all.push_back(
      {"permute", "a transposed matrix", {normal({33, 5})}, [](CheckInputs x) -> CheckOutputs { return {transpose(x[0], 0, 1)}; }});
  all.push_back({"cast", "to f32 and back", {eighths({3, 5})},
      [](CheckInputs x) -> CheckOutputs { return {cast(cast(x[0], Dtype::f32), Dtype::f64)}; }, 0.125});
}

}  // namespace

void add_element_checks(std::vector<OpCheck>& all) {
  for (const auto& [name, op] : {std::pair<const char*, Unary>{"gelu", gelu}, {"gelu_tanh", gelu_tanh}, {"relu", relu}}) {
    all.push_back({name, "odd size", {normal({3, 7})}, of(op)});
    all.push_back({name, "one element", {normal({1})}, of(op)});
  }
  all.push_back({"sigmoid", "odd size", {normal({3, 7})}, of(sigmoid)});
  for (const auto& [name, op] :
      {std::pair<const char*, Binary>{"add", add}, {"subtract", subtract}, {"multiply", multiply}, {"divide", divide}}) {
    all.push_back({name, "equal shapes", {normal({3, 5}), positive({3, 5})}, of(op)});
    all.push_back({name, "broadcast on the left", {normal({5}), positive({2, 3, 5})}, of(op)});
    all.push_back({name, "broadcast on the right", {normal({2, 3, 5}), positive({3, 1})}, of(op)});
    all.push_back({name, "both broadcast", {normal({3, 1, 2}), positive({1, 4, 2})}, of(op)});
    all.push_back({name, "a scalar", {normal({2, 3}), positive({})}, of(op)});
  }
  all.push_back({"scale", "odd size", {normal({3, 7})}, [](CheckInputs x) -> CheckOutputs { return {scale(x[0], -2.5)}; }});
  all.push_back({"dropout", "a third is dropped", {normal({9, 7})}, [](CheckInputs x) -> CheckOutputs {
                   set_random_state({3, 5});
                   return {dropout(x[0], 0.3)};
                 }});
  add_shape_checks(all);
}

}  // namespace ricci
