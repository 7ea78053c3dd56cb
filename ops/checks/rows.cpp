#include "ops/checks/checks_list.h"
#include "ops/rows/cross_entropy.h"
#include "ops/rows/layer_norm.h"
#include "ops/rows/reduce.h"
#include "ops/rows/softmax.h"

namespace ricci {

void add_row_checks(std::vector<OpCheck>& all) {
  auto norm = [](CheckInputs x) -> CheckOutputs { return {layer_norm(x[0], x[1], x[2])}; };
  all.push_back({"layer_norm", "odd sizes", {normal({3, 5, 7}), normal({7}), normal({7})}, norm});
  all.push_back({"layer_norm", "one row, wider than a block", {normal({1, 301}), normal({301}), normal({301})}, norm});
  all.push_back({"layer_norm", "no bias", {normal({4, 6}), normal({6})},
      [](CheckInputs x) -> CheckOutputs { return {layer_norm(x[0], x[1], Tensor())}; }});
  auto residual = [](CheckInputs x) -> CheckOutputs {
    const auto [s, y] = residual_layer_norm(x[0], x[1], x[2], x[3]);
    return {s, y};
  };
  all.push_back({"residual_layer_norm", "odd sizes", {normal({3, 5, 7}), normal({3, 5, 7}), normal({7}), normal({7})}, residual});
  all.push_back({"residual_layer_norm", "only the norm is used", {normal({5, 9}), normal({5, 9}), normal({9}), normal({9})},
      [](CheckInputs x) -> CheckOutputs { return {residual_layer_norm(x[0], x[1], x[2], x[3])[1]}; }});
  all.push_back({"residual_layer_norm", "no bias", {normal({5, 9}), normal({5, 9}), normal({9})}, [](CheckInputs x) -> CheckOutputs {
                   const auto [s, y] = residual_layer_norm(x[0], x[1], x[2], Tensor());
                   return {s, y};
                 }});
  auto soft = [](CheckInputs x) -> CheckOutputs { return {softmax(x[0])}; };
  all.push_back({"softmax", "odd sizes", {normal({3, 5, 7})}, soft});
  all.push_back({"softmax", "wider than a block", {normal({2, 301})}, soft});
  all.push_back({"cross_entropy", "wider than a block", {normal({3, 301}), integers({3}, 301)},
      [](CheckInputs x) -> CheckOutputs { return {cross_entropy(x[0], x[1].value)}; }});
  all.push_back({"cross_entropy", "sequences", {normal({2, 3, 5}), integers({2, 3}, 5)},
      [](CheckInputs x) -> CheckOutputs { return {cross_entropy(x[0], x[1].value)}; }});
  all.push_back({"cross_entropy", "rows without a target", {normal({5, 7}), integers({5}, 7)},
      [](CheckInputs x) -> CheckOutputs { return {cross_entropy(x[0], with_gaps(x[1].value))}; }});
  for (int index : {0, 1, -1}) {
    all.push_back({"sum", "one index", {normal({3, 5, 7})}, [index](CheckInputs x) -> CheckOutputs { return {sum(x[0], index)}; }});
    all.push_back({"mean", "one index", {normal({3, 5, 7})}, [index](CheckInputs x) -> CheckOutputs { return {mean(x[0], index)}; }});
  }
  all.push_back({"sum", "everything", {normal({3, 5})}, [](CheckInputs x) -> CheckOutputs { return {sum(x[0])}; }});
  all.push_back({"mean", "everything", {normal({3, 5})}, [](CheckInputs x) -> CheckOutputs { return {mean(x[0])}; }});
}

}  // namespace ricci
