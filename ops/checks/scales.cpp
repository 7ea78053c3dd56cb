#include "ops/checks/checks_list.h"
#include "ops/scales/bag_cross_entropy.h"
#include "ops/scales/cells.h"
#include "ops/scales/join_upsampled.h"

namespace ricci {
namespace {

void add_cell_checks(std::vector<OpCheck>& all) {
  const auto cells = [&](const char* what, Shape x, int64_t size) {
    for (auto [name, op] : {std::pair<const char*, Tensor (*)(const Arg&, int64_t)>{"cell_mean", cell_mean}, {"cell_max", cell_max}})
      all.push_back({name, what, {normal(x)}, [op = op, size](CheckInputs in) -> CheckOutputs { return {op(in[0], size)}; }});
  };
  cells("positions behind the last cell", {2, 7, 5}, 3);
  cells("whole cells", {3, 8, 2}, 2);
  cells("cells of one position", {1, 3, 4}, 1);
  const auto windows = [&](const char* what, Shape x, int64_t size, int64_t kernel, int64_t history) {
    all.push_back(
        {"cell_windows", what, {normal(x)}, [=](CheckInputs in) -> CheckOutputs { return {cell_windows(in[0], size, kernel, history)}; }});
  };
  windows("the kernel is a cell", {2, 7, 3}, 3, 3, 0);
  windows("the kernel is three cells", {2, 9, 3}, 2, 6, 0);
  windows("the kernel is no multiple of a cell", {1, 8, 2}, 3, 5, 0);
  windows("history", {2, 9, 2}, 2, 6, 4);
  windows("some of the history", {1, 10, 2}, 3, 9, 2);
}

void add_join_checks(std::vector<OpCheck>& all) {
  const auto join = [&](const char* what, Shape a, Shape z, int64_t shift) {
    all.push_back({"join_upsampled", what, {normal(a), normal(z), normal({a[2]})},
        [=](CheckInputs in) -> CheckOutputs { return {join_upsampled(in[0], in[1], in[2], shift)}; }});
  };
  join("tight, rows without a cell behind", {2, 11, 3}, {2, 2, 12}, 3);
  join("block, the last cell is cut", {2, 10, 3}, {2, 4, 6}, 3);
  join("from the midst of a cell", {1, 5, 2}, {1, 3, 6}, -2);
  join("of the same length", {2, 4, 5}, {2, 4, 5}, 0);
}

}  // namespace

void add_scale_checks(std::vector<OpCheck>& all) {
  add_cell_checks(all);
  add_join_checks(all);
  const auto bag = [&](const char* what, Shape logits, int64_t context, int64_t size, std::vector<int64_t> lengths) {
    all.push_back(
        {"bag_cross_entropy", what, {normal(logits), integers({logits[0], context}, logits[2])}, [=](CheckInputs in) -> CheckOutputs {
           return {bag_cross_entropy(in[0], in[1], size, lengths.empty() ? Tensor() : integers_on(lengths, in[0].value.device()))};
         }});
  };
  bag("tokens that repeat, positions behind the last cell", {2, 4, 5}, 14, 3, {});
  bag("padding", {4, 3, 7}, 6, 2, {6, 5, 3, 0});
}

}  // namespace ricci
