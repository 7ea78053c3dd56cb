#include "autograd/random.h"
#include "autograd/recompute.h"
#include "cuda/device/device.h"
#include "ops/checks/checks_list.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/dropout.h"
#include "ops/elements/gelu.h"
#include "ops/embedding/embedding.h"
#include "ops/products/classifier.h"
#include "ops/products/linear.h"

namespace ricci {
namespace {

void add_embedding_checks(std::vector<OpCheck>& all) {
  all.push_back({"embedding", "repeated ids and positions", {integers({3, 5}, 4), normal({4, 7}), normal({9, 7})},
      [](CheckInputs x) -> CheckOutputs { return {embedding(x[0], x[1], x[2], 1.5, 2)}; }});
  all.push_back({"embedding", "no positions", {integers({2, 3}, 50), normal({50, 3})},
      [](CheckInputs x) -> CheckOutputs { return {embedding(x[0], x[1], Tensor())}; }});
}

void add_classifier_checks(std::vector<OpCheck>& all) {
  all.push_back({"classifier_loss", "bias, rows without a target", {normal({7, 5}), normal({11, 5}), normal({11}), integers({7}, 11)},
      [](CheckInputs x) -> CheckOutputs { return {classifier_loss(x[0], x[1], x[2], with_gaps(x[3].value))}; }});
  all.push_back({"classifier_loss", "no bias, wider than a block", {normal({3, 4}), normal({301, 4}), integers({3}, 301)},
      [](CheckInputs x) -> CheckOutputs { return {classifier_loss(x[0], x[1], Tensor(), x[2].value)}; }});
}

}  // namespace

void add_model_checks(std::vector<OpCheck>& all) {
  add_embedding_checks(all);
  add_classifier_checks(all);
  all.push_back({"recompute", "parameters inside, dropout, two inputs", {normal({3, 5}), normal({3, 5}), normal({4, 5})},
      [](CheckInputs x) -> CheckOutputs {
        set_random_state({1, 2});
        const Parameter* w = &x[2];
        return {recompute(
            [w](const std::vector<Tensor>& in) { return dropout(linear(gelu(in[0]) + in[1], *w, Tensor()), 0.2); }, {x[0], x[1]})};
      }});
}

}  // namespace ricci
