#include <algorithm>

#include "autograd/random.h"
#include "cuda/device/device.h"
#include "ops/attention/attention.h"
#include "ops/checks/checks_list.h"
#include "ops/elements/gelu.h"
#include "ops/products/contract.h"
#include "ops/products/linear.h"

namespace ricci {
namespace {

CheckedFunction contraction(const char* formula) {
  return [formula](CheckInputs x) -> CheckOutputs { return {contract(formula, x[0], x[1])}; };
}

Tensor on_device(const std::vector<int64_t>& values, Device device) {
  const Tensor t({static_cast<int64_t>(values.size())}, Dtype::i64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return to(t, device);
}

void add_attention_checks(std::vector<OpCheck>& all) {
  using Attention = Tensor (*)(const Arg&, const AttentionOptions&);
  auto check = [&](const char* what, Shape qkv, AttentionOptions options, std::vector<int64_t> lengths = {}) {
    for (auto [name, f] : {std::pair<const char*, Attention>{"attention", attention}, {"naive_attention", naive_attention}})
      all.push_back({name, what, {normal(qkv)}, [=](CheckInputs x) -> CheckOutputs {
                       AttentionOptions now = options;
                       if (!lengths.empty()) now.lengths_b = on_device(lengths, x[0].value.device());
                       set_random_state({5, 1});
                       return {f(x[0], now)};
                     }});
  };
  check("causal, odd sizes", {2, 7, 3 * 6}, {.heads = 2});
  check("one position", {2, 1, 3 * 4}, {.heads = 1});
  check("a window", {1, 11, 3 * 6}, {.heads = 3, .window = 4});
  check("every key", {1, 5, 3 * 5}, {.heads = 1, .causal = false});
  check("a window back, every later key", {1, 6, 3 * 2}, {.heads = 1, .causal = false, .window = 2});
  check("dropout", {2, 9, 3 * 4}, {.heads = 2, .dropout = 0.3});
  check("longer than a block", {1, 67, 3 * 2}, {.heads = 1});
  check("padding", {4, 7, 3 * 4}, {.heads = 2}, {7, 3, 0, 1});
  check("padding, a window, every later key", {2, 9, 3 * 2}, {.heads = 1, .causal = false, .window = 3}, {4, 9});
  check("padding of a block and more, dropout", {2, 67, 3 * 2}, {.heads = 1, .dropout = 0.3}, {66, 2});
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
  all.push_back({"linear", "no bias", {normal({4, 6}), normal({3, 6})}, [](CheckInputs x) -> CheckOutputs { return {linear(x[0], x[1], Tensor())}; }});
  all.push_back({"linear", "between other ops", {normal({4, 6}), normal({3, 6}), normal({3})}, [](CheckInputs x) -> CheckOutputs {
                   return {gelu(linear(gelu(x[0]), x[1], x[2]))};
                 }});
  add_attention_checks(all);
}

}  // namespace ricci
