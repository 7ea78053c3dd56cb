#include "ops/checks/checks_list.h"
#include "ops/elements/gelu.h"
#include "ops/products/contract.h"
#include "ops/products/linear.h"

namespace ricci {
namespace {

CheckedFunction contraction(const char* formula) {
  return [formula](CheckInputs x) -> CheckOutputs { return {contract(formula, x[0], x[1])}; };
}

}  // namespace

void add_product_checks(std::vector<OpCheck>& all) {
  all.push_back({"contract", "a matrix product", {normal({3, 5}), normal({5, 7})}, contraction("mk,kn->mn")});
  all.push_back({"contract", "scores of attention", {normal({2, 3, 2, 5}), normal({2, 4, 2, 5})}, contraction("bcnk,bCnk->bncC")});
  all.push_back({"contract", "two summed indices that do not merge", {normal({3, 2, 4}), normal({4, 3, 5})}, contraction("kml,lkn->mn")});
  all.push_back({"contract", "an index in one factor alone", {normal({3, 2, 5}), normal({5, 4})}, contraction("mxk,kn->nm")});
  all.push_back({"contract", "an outer product", {normal({3}), normal({4})}, contraction("m,n->mn")});
  all.push_back({"contract", "one number", {normal({3, 4}), normal({4, 3})}, contraction("mk,km->")});
  all.push_back({"contract", "lone, merged and looped indices", {normal({2, 3, 4}), normal({3, 4, 5, 2})}, contraction("xmk,yknz->mn")});
  all.push_back({"contract", "element by element", {normal({17}), normal({17})}, contraction("b,b->b")});
  all.push_back({"contract", "two batch indices", {normal({2, 3, 2, 3}), normal({3, 2, 2, 2})}, contraction("amcb,bnda->abcdmn")});
  auto map = [](CheckInputs x) -> CheckOutputs { return {linear(x[0], x[1], x[2])}; };
  all.push_back({"linear", "odd sizes", {normal({2, 3, 5}), normal({7, 5}), normal({7})}, map});
  all.push_back({"linear", "one row", {normal({1, 33}), normal({17, 33}), normal({17})}, map});
  all.push_back({"linear", "width one", {normal({3, 1}), normal({5, 1}), normal({5})}, map});
  all.push_back({"linear", "no bias", {normal({4, 6}), normal({3, 6})},
      [](CheckInputs x) -> CheckOutputs { return {linear(x[0], x[1], Tensor())}; }});
  all.push_back({"linear", "between other ops", {normal({4, 6}), normal({3, 6}), normal({3})},
      [](CheckInputs x) -> CheckOutputs { return {gelu(linear(gelu(x[0]), x[1], x[2]))}; }});
}

}  // namespace ricci
