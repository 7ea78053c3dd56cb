// The checks of matrix products and of ops around them. Odd sizes test that no kernel reads past the end of a row.
#include "ops/products/products.h"

#include "autograd/recompute.h"
#include "core/philox.h"
#include "ops/checks/checks.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/dropout.h"
#include "ops/embedding/embedding.h"

namespace ricci {
namespace {

void add_contract_checks(std::vector<OpCheck>& all) {
  const auto check = [&](const char* variant, const char* formula, Shape a, Shape b) {
    all.push_back({"contract", variant, {normal(a), normal(b)}, [=](const Arg& a, const Arg& b) { return contract(formula, a, b); }});
  };
  check("a matrix product", "mk,kn->mn", {3, 5}, {5, 7});
  check("scores of attention", "bcnk,bCnk->bncC", {2, 3, 2, 5}, {2, 4, 2, 5});
  check("two summed indices that do not merge", "kml,lkn->mn", {3, 2, 4}, {4, 3, 5});
  check("an index in only one factor", "mxk,kn->nm", {3, 2, 5}, {5, 4});
  check("an outer product", "m,n->mn", {3}, {4});
  check("one number", "mk,km->", {3, 4}, {4, 3});
  check("lone, merged and looped indices", "xmk,yknz->mn", {2, 3, 4}, {3, 4, 5, 2});
  check("element by element", "b,b->b", {17}, {17});
  check("two batch indices", "amcb,bnda->abcdmn", {2, 3, 2, 3}, {3, 2, 2, 2});
}

}  // namespace

void add_product_checks(std::vector<OpCheck>& all) {
  add_contract_checks(all);
  all.push_back({"linear", "odd sizes", {normal({2, 3, 5}), normal({7, 5}), normal({7})}, linear});
  all.push_back({"linear", "one row", {normal({1, 33}), normal({17, 33}), normal({17})}, linear});
  all.push_back({"linear", "width one", {normal({3, 1}), normal({5, 1}), normal({5})}, linear});
  all.push_back({"linear", "no bias", {normal({4, 6}), normal({3, 6})}, [](const Arg& x, const Arg& w) { return linear(x, w, Tensor()); }});
  all.push_back({"linear", "between other ops", {normal({4, 6}), normal({3, 6}), normal({3})},
      [](const Arg& x, const Arg& w, const Arg& bias) { return gelu(linear(gelu(x), w, bias)); }});
  for (size_t i = 0; i < choices(Activation{}).size(); ++i)
    all.push_back(
        {"gated", choices(Activation{})[i], {normal({2, 3, 10})}, [f = static_cast<Activation>(i)](const Arg& x) { return gated(f, x); }});
  all.push_back({"gated", "packs of 16 bytes", {normal({3, 8})}, [](const Arg& x) { return gated(Activation::silu, x); }});
  all.push_back({"embedding", "repeated ids and positions", {integers({3, 5}, 4), normal({4, 7}), normal({9, 7})},
      [](CheckInputs x) { return embedding(x[0], x[1], x[2], 1.5, 2); }});
  all.push_back({"embedding", "no positions", {integers({2, 3}, 50), normal({50, 3})},
      [](CheckInputs x) { return embedding(x[0], x[1], Tensor()); }});
  all.push_back({"classifier_loss", "bias, rows without a target", {normal({7, 5}), normal({11, 5}), normal({11}), integers({7}, 11)},
      [](CheckInputs x) { return classifier_loss(x[0], x[1], x[2], with_gaps(x[3].value)); }});
  all.push_back({"classifier_loss", "no bias, wider than a block", {normal({3, 4}), normal({301, 4}), integers({3}, 301)},
      [](CheckInputs x) { return classifier_loss(x[0], x[1], Tensor(), x[2].value); }});
  all.push_back({"recompute", "parameters inside, dropout, two inputs", {normal({3, 5}), normal({3, 5}), normal({4, 5})},
      [](CheckInputs x) {
        set_random_state({1, 2});
        const Parameter* w = &x[2];
        return recompute([w](const std::vector<Tensor>& inputs) { return dropout(linear(gelu(inputs[0]) + inputs[1], *w, Tensor()), 0.2); },
            {x[0], x[1]});
      }});
}

}  // namespace ricci
