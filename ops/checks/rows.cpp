// The checks of ops on rows, of means over positions, and of coarser scales. Some rows are wider than a thread block: different code
// computes them.
#include "ops/checks/checks.h"
#include "ops/pooling/window_mean.h"
#include "ops/rows/cross_entropy.h"
#include "ops/rows/layer_norm.h"
#include "ops/rows/reduce.h"
#include "ops/rows/rms_norm.h"
#include "ops/rows/softmax.h"
#include "ops/scales/cells.h"

namespace ricci {
namespace {

void add_norm_checks(std::vector<OpCheck>& all) {
  const auto norm = [](const Arg& x, const Arg& gain, const Arg& bias) { return layer_norm(x, gain, bias); };
  all.push_back({"layer_norm", "odd sizes", {normal({3, 5, 7}), normal({7}), normal({7})}, norm});
  all.push_back({"layer_norm", "one row, wider than a block", {normal({1, 301}), normal({301}), normal({301})}, norm});
  all.push_back({"layer_norm", "no bias", {normal({4, 6}), normal({6})},
      [](const Arg& x, const Arg& gain) { return layer_norm(x, gain, Tensor()); }});
  all.push_back({"residual_layer_norm", "odd sizes", {normal({3, 5, 7}), normal({3, 5, 7}), normal({7}), normal({7})},
      [](CheckInputs x) { return residual_layer_norm(x[0], x[1], x[2], x[3]); }});
  all.push_back({"residual_layer_norm", "only the norm is used", {normal({5, 9}), normal({5, 9}), normal({9}), normal({9})},
      [](CheckInputs x) { return residual_layer_norm(x[0], x[1], x[2], x[3])[1]; }});
  all.push_back({"residual_layer_norm", "no bias", {normal({5, 9}), normal({5, 9}), normal({9})},
      [](CheckInputs x) { return residual_layer_norm(x[0], x[1], x[2], Tensor()); }});
}

void add_rms_norm_checks(std::vector<OpCheck>& all) {
  const auto norm = [](const Arg& x, const Arg& gain) { return rms_norm(x, gain); };
  all.push_back({"rms_norm", "odd sizes", {normal({3, 5, 7}), normal({7})}, norm});
  all.push_back({"rms_norm", "one row, wider than a block", {normal({1, 301}), normal({301})}, norm});
  all.push_back(
      {"rms_norm", "a large eps", {normal({4, 6}), normal({6})}, [](const Arg& x, const Arg& gain) { return rms_norm(x, gain, 0.5); }});
  const std::vector<CheckInput> inputs = {normal({3, 5, 8}), normal({3, 5, 8}), normal({8})};
  all.push_back({"residual_rms_norm", "both outputs", inputs, [](CheckInputs x) { return residual_rms_norm(x[0], x[1], x[2]); }});
  all.push_back(
      {"residual_rms_norm", "only the norm is used", inputs, [](CheckInputs x) { return residual_rms_norm(x[0], x[1], x[2])[1]; }});
}

void add_pooling_checks(std::vector<OpCheck>& all) {
  const auto window = [&](const char* variant, Shape x, MeanWindow around, std::vector<int64_t> lengths = {}) {
    all.push_back({"window_mean_difference", variant, {normal(x)},
        [=](const Arg& x_bcd) { return window_mean_difference(x_bcd, around, integers_on(lengths, x_bcd.device())); }});
  };
  window("causal, odd sizes", {2, 7, 5}, {3, true});
  window("both sides", {2, 7, 5}, {3, false});
  window("wider than the sequence", {1, 4, 3}, {9, false});
  window("an even window", {2, 6, 3}, {4, true});
  window("two positions", {3, 2, 2}, {5, true});
  window("padding, both sides", {4, 6, 3}, {3, false}, {6, 3, 0, 1});
  window("padding, causal", {3, 6, 3}, {4, true}, {6, 2, 0});
  const auto mean = [&](const char* variant, Shape x, std::vector<int64_t> lengths) {
    all.push_back({"mean_over_positions", variant, {normal(x)},
        [=](const Arg& x_bcd) { return mean_over_positions(x_bcd, integers_on(lengths, x_bcd.device())); }});
  };
  mean("full sequences", {2, 7, 5}, {});
  mean("padding", {4, 5, 3}, {5, 2, 0, 1});
}

void add_cell_checks(std::vector<OpCheck>& all) {
  const auto cells = [&](const char* variant, Shape x, int64_t size) {
    all.push_back({"cell_mean", variant, {normal(x)}, [=](const Arg& x_bcd) { return cell_mean(x_bcd, size); }});
    all.push_back({"cell_max", variant, {normal(x)}, [=](const Arg& x_bcd) { return cell_max(x_bcd, size); }});
  };
  cells("positions after the last cell", {2, 7, 5}, 3);
  cells("full cells", {3, 8, 2}, 2);
  cells("cells of one position", {1, 3, 4}, 1);
  const auto windows = [&](const char* variant, Shape x, int64_t size, int64_t kernel, int64_t history) {
    all.push_back({"cell_windows", variant, {normal(x)}, [=](const Arg& x_bcd) { return cell_windows(x_bcd, size, kernel, history); }});
  };
  windows("the kernel is a cell", {2, 7, 3}, 3, 3, 0);
  windows("the kernel is three cells", {2, 9, 3}, 2, 6, 0);
  windows("the kernel is not a multiple of a cell", {1, 8, 2}, 3, 5, 0);
  windows("history", {2, 9, 2}, 2, 6, 4);
  windows("some of the history", {1, 10, 2}, 3, 9, 2);
  const auto join = [&](const char* variant, Shape a, Shape z, int64_t shift) {
    all.push_back({"join_upsampled", variant, {normal(a), normal(z), normal({a[2]})},
        [=](CheckInputs x) { return join_upsampled(x[0], x[1], x[2], shift); }});
  };
  join("tight, rows after the last cell", {2, 11, 3}, {2, 2, 12}, 3);
  join("block, the last cell is cut", {2, 10, 3}, {2, 4, 6}, 3);
  join("from the midst of a cell", {1, 5, 2}, {1, 3, 6}, -2);
  join("of the same length", {2, 4, 5}, {2, 4, 5}, 0);
}

void add_loss_checks(std::vector<OpCheck>& all) {
  const auto loss = [](CheckInputs x) { return cross_entropy(x[0], x[1].value); };
  all.push_back({"cross_entropy", "wider than a block", {normal({3, 301}), integers({3}, 301)}, loss});
  all.push_back({"cross_entropy", "sequences", {normal({2, 3, 5}), integers({2, 3}, 5)}, loss});
  all.push_back({"cross_entropy", "rows without a target", {normal({5, 7}), integers({5}, 7)},
      [](CheckInputs x) { return cross_entropy(x[0], with_gaps(x[1].value)); }});
  const auto bag = [&](const char* variant, Shape logits, int64_t context, int64_t size, std::vector<int64_t> lengths) {
    all.push_back({"bag_cross_entropy", variant, {normal(logits), integers({logits[0], context}, logits[2])},
        [=](CheckInputs x) { return bag_cross_entropy(x[0], x[1], size, integers_on(lengths, x[0].value.device())); }});
  };
  bag("tokens that repeat, positions after the last cell", {2, 4, 5}, 14, 3, {});
  bag("padding", {4, 3, 7}, 6, 2, {6, 5, 3, 0});
}

}  // namespace

void add_row_checks(std::vector<OpCheck>& all) {
  add_norm_checks(all);
  add_rms_norm_checks(all);
  all.push_back({"softmax", "odd sizes", {normal({3, 5, 7})}, softmax});
  all.push_back({"softmax", "wider than a block", {normal({2, 301})}, softmax});
  add_loss_checks(all);
  for (int index : {0, 1, -1}) {
    all.push_back({"sum", "one index", {normal({3, 5, 7})}, [index](const Arg& x) { return sum(x, index); }});
    all.push_back({"mean", "one index", {normal({3, 5, 7})}, [index](const Arg& x) { return mean(x, index); }});
  }
  all.push_back({"sum", "everything", {normal({3, 5})}, [](const Arg& x) { return sum(x); }});
  all.push_back({"mean", "everything", {normal({3, 5})}, [](const Arg& x) { return mean(x); }});
  add_pooling_checks(all);
  add_cell_checks(all);
}

}  // namespace ricci
