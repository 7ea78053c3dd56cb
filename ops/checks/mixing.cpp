// The checks of ops that exchange information between positions. Some checks use more than 64 positions, the block size of attention.
#include "core/philox.h"
#include "ops/attention/attention.h"
#include "ops/checks/checks.h"
#include "ops/metric/metric.h"
#include "ops/rotary/rotary.h"
#include "ops/shapes/shape_ops.h"
#include "ops/shift_and_sum/shift_and_sum.h"

namespace ricci {
namespace {

// The input that contains q, k or v, and its first column there.
struct SliceOf {
  size_t input;
  int64_t offset = 0;
};

struct AttentionCheck {
  const char* variant;
  std::vector<Shape> inputs;
  int64_t width;  // the columns of q; k and v can have fewer heads
  SliceOf q, k, v;
  Visibility sees = Visibility::causal();
  AttentionOptions options{.heads = 1};
  std::vector<int64_t> lengths{};
};

void add(std::vector<OpCheck>& all, const AttentionCheck& check) {
  std::vector<CheckInput> inputs;
  for (const Shape& shape : check.inputs) inputs.push_back(normal(shape));
  all.push_back({"attention", check.variant, inputs, [check](CheckInputs x) {
                   const std::vector<Arg> args(x.begin(), x.end());
                   AttentionOptions options = check.options;
                   const int64_t kv_width = check.width / options.heads * (options.kv_heads ? options.kv_heads : options.heads);
                   const auto slice = [&](SliceOf from, int64_t width) { return ColumnSlice{args[from.input], from.offset, width}; };
                   options.lengths_b = integers_on(check.lengths, x[0].value.device());
                   set_random_state({5, 1});
                   return attention(slice(check.q, check.width), slice(check.k, kv_width), slice(check.v, kv_width), check.sees, options);
                 }});
}

// Adds checks with queries, keys and values as the thirds of one tensor.
void add_packed_checks(std::vector<OpCheck>& all) {
  const auto check = [&](const char* variant, int64_t b, int64_t c, int64_t d, const Visibility& sees, const AttentionOptions& options,
                         std::vector<int64_t> lengths = {}) {
    add(all, {variant, {{b, c, 3 * d}}, d, {0}, {0, d}, {0, 2 * d}, sees, options, std::move(lengths)});
  };
  const auto causal = Visibility::causal, not_causal = Visibility::not_causal;
  check("causal, odd sizes", 2, 7, 6, causal(0), {.heads = 2});
  check("one position", 2, 1, 4, causal(0), {.heads = 1});
  check("a window", 1, 11, 6, causal(4), {.heads = 3});
  check("every key", 1, 5, 5, not_causal(0), {.heads = 1});
  check("a window back, every later key", 1, 6, 2, not_causal(2), {.heads = 1});
  check("dropout", 2, 9, 4, causal(0), {.heads = 2, .dropout = 0.3});
  check("longer than a block", 1, 67, 2, causal(0), {.heads = 1});
  check("padding", 4, 7, 4, causal(0), {.heads = 2}, {7, 3, 0, 1});
  check("padding, a window, every later key", 2, 9, 2, not_causal(3), {.heads = 1}, {4, 9});
  check("padding of a block and more, dropout", 2, 67, 2, causal(0), {.heads = 1, .dropout = 0.3}, {66, 2});
  // A query that sees a single key passes no gradient to this key: only the gradient of the values is not zero.
  check("a window of one cell, seen by few queries", 1, 15, 2, Visibility::cells(4, 0, 4), {.heads = 1});
  check("a different scale", 1, 5, 4, causal(0), {.heads = 2, .scale = 0.3});
}

// Adds checks with slices of one, two or three tensors. The gradients of equal slices are added.
void add_slice_checks(std::vector<OpCheck>& all) {
  const Shape c5{1, 5, 4}, c7{1, 7, 4};
  add(all, {"three tensors, fewer queries than keys", {c5, c7, c7}, 4, {0}, {1}, {2}, Visibility::not_causal(), {.heads = 2}});
  add(all, {"three tensors, more queries than keys", {c7, c5, c5}, 4, {0}, {1}, {2}, Visibility::causal(), {.heads = 1}});
  add(all, {"keys and values are one slice", {c7, c7}, 4, {0}, {1}, {1}, Visibility::causal(), {.heads = 2, .dropout = 0.2}});
  add(all, {"all three are one slice", {{2, 7, 4}}, 4, {0}, {0}, {0}, Visibility::causal(), {.heads = 2}});
  add(all, {"queries and values are one slice", {{1, 6, 8}}, 4, {0, 4}, {0}, {0, 4}, Visibility::causal(), {.heads = 1}});
  add(all, {"queries and keys are one slice, longer than a block", {{1, 66, 4}}, 2, {0, 2}, {0, 2}, {0}, Visibility::causal()});
  add(all, {"some columns of wider tensors", {{1, 5, 9}, {1, 5, 11}}, 4, {0, 2}, {1, 6}, {1, 1}, Visibility::causal(), {.heads = 2}});
  add(all, {"queries from position 4 on", {{1, 3, 4}, {1, 7, 8}}, 4, {0}, {1}, {1, 4}, Visibility::causal(5).from(4), {.heads = 1}});
}

// Adds checks with query heads that share heads of keys and values.
void add_group_checks(std::vector<OpCheck>& all) {
  const Visibility causal = Visibility::causal();
  add(all, {"groups: one key head", {{2, 7, 16}}, 12, {0}, {0, 12}, {0, 14}, causal, {.heads = 6, .kv_heads = 1}});
  add(all, {"groups of two, longer than a block", {{1, 67, 16}}, 8, {0}, {0, 8}, {0, 12}, causal, {.heads = 4, .kv_heads = 2}});
  add(all, {"groups: a key head for each head", {{1, 5, 18}}, 6, {0}, {0, 6}, {0, 12}, causal, {.heads = 3, .kv_heads = 3}});
  add(all, {"groups: padding, a window, dropout, turned keys in another tensor", {{3, 9, 12}, {3, 9, 4}}, 8, {0}, {0, 8}, {1},
               Visibility::causal(4), {.heads = 4, .dropout = 0.2, .kv_heads = 2}, {9, 5, 1}});
  add(all, {"groups: keys and values are one slice", {{1, 7, 9}, {1, 5, 3}}, 9, {0}, {1}, {1}, causal, {.heads = 3, .kv_heads = 1}});
}

void add_cell_checks(std::vector<OpCheck>& all) {
  const auto check = [&](const char* variant, int64_t b, int64_t c, int64_t cells, const Visibility& sees, const AttentionOptions& options,
                         std::vector<int64_t> lengths = {}) {
    add(all, {variant, {{b, c, 2}, {b, cells, 4}}, 2, {0}, {1}, {1, 2}, sees, options, std::move(lengths)});
  };
  const CellRule inside = CellRule::inside, end = CellRule::end;
  check("every complete cell", 1, 13, 3, Visibility::cells(4), {.heads = 2});
  check("cells inside a window", 1, 15, 7, Visibility::cells(2, 1, 7, inside), {.heads = 1});
  check("cells that end in a window", 1, 15, 5, Visibility::cells(3, 2, 8, end), {.heads = 1, .dropout = 0.2});
  check("a window that overlaps the last one", 1, 15, 7, Visibility::cells(2, 0, 12, end), {.heads = 2});
  check("padding of cells, a sequence shorter than a cell", 3, 9, 4, Visibility::cells(2, 0, 6, end), {.heads = 2}, {4, 0, 2});
  check("more cells than a block, queries from position 118 on", 1, 16, 66, Visibility::cells(2, 3, 133, inside).from(118), {.heads = 2});
}

void add_metric_checks(std::vector<OpCheck>& all) {
  using Metric = Tensor (*)(const Arg&, const Arg&, Triangle);
  for (const auto& [name, f] : {std::pair<const char*, Metric>{"times_metric", times_metric}, {"metric_scores", metric_scores}})
    for (const auto& [variant, triangle] : {std::pair{"a symmetric metric", Triangle::upper}, {"a factored metric", Triangle::lower}}) {
      const auto check = [&all, name = name, variant = variant, f = f, triangle = triangle](Shape p, int64_t heads) {
        all.push_back({name, variant, {normal(p), normal({heads, packed_size(p[2] / heads)})},
            [f, triangle](const Arg& p_bcd, const Arg& m_nl) { return f(p_bcd, m_nl, triangle); }});
      };
      check({2, 5, 8}, 2);
      check({1, 3, 5}, 1);
      check({2, 1, 3}, 3);
    }
}

void add_rotary_checks(std::vector<OpCheck>& all) {
  const auto check = [&](const char* variant, Shape x, RotaryHeads heads, int64_t turned, int64_t first = 0) {
    const auto run = [=](CheckInputs inputs, bool gains) {
      const Tensor table_Cr = turned ? rotary_table(first + x[1], turned, {.theta = 7}, Dtype::f64, inputs[0].value.device()) : Tensor();
      return gains ? rotary(inputs[0], heads, inputs[1], inputs[2], table_Cr, first)
                   : rotary(inputs[0], heads, Tensor(), Tensor(), table_Cr, first);
    };
    if (turned) all.push_back({"rotary", variant, {normal(x)}, [=](CheckInputs inputs) { return run(inputs, false); }});
    all.push_back({"rotary", variant, {normal(x), normal({heads.width}), normal({heads.width})},
        [=](CheckInputs inputs) { return run(inputs, true); }});
  };
  check("odd sizes, values after the keys", {2, 3, 24}, {3, 2, 4}, 4);
  check("some columns of a head, later positions", {1, 5, 10}, {1, 1, 5}, 2, 37);
  check("heads wider than a warp", {2, 2, 70}, {1, 1, 35}, 34, 1);
  check("nothing turns", {2, 3, 8}, {1, 1, 4}, 0);
  for (bool values_first : {false, true})
    all.push_back({"rotary", "values of the same tensor", {normal({2, 3, 12})}, [=](CheckInputs x) {
                     const Tensor table_Cr = rotary_table(3, 4, {}, Dtype::f64, x[0].value.device());
                     const Tensor before = values_first ? slice(x[0], 2, 8, 4) : Tensor();
                     const Tensor y = rotary(x[0], {1, 1, 4}, Tensor(), Tensor(), table_Cr);
                     return std::array{y, values_first ? before : slice(x[0], 2, 8, 4)};
                   }});
}

}  // namespace

void add_mixing_checks(std::vector<OpCheck>& all) {
  add_packed_checks(all);
  add_slice_checks(all);
  add_group_checks(all);
  add_cell_checks(all);
  const auto shift = [&](const char* variant, int64_t b, int64_t c, int64_t d, int64_t levels, const ShiftAndSumOptions& options = {}) {
    all.push_back(
        {"shift_and_sum", variant, {normal({b, c, d}), normal({b, c, options.heads * levels})}, [=](const Arg& v, const Arg& coef) {
           set_random_state({5, 3});  // this leaves out one of four levels
           return shift_and_sum(v, coef, options);
         }});
  };
  shift("two positions", 1, 2, 1, 1);
  shift("odd sizes, two heads", 2, 7, 10, 3, {.heads = 2});
  shift("more levels than are used", 1, 3, 3, 5);
  shift("fewer levels than positions", 1, 13, 5, 2);
  shift("two walks", 1, 13, 5, 4);
  shift("two walks over more than a vector", 1, 17, 35, 5);
  shift("a level is skipped", 2, 13, 3, 4, {.dropout = 0.5});
  add_metric_checks(all);
  add_rotary_checks(all);
}

}  // namespace ricci
