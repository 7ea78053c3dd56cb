// Checks the arguments of masks and of the public ops (attention, decoding and inspection), and makes a Problem from them.
#include <cmath>
#include <string>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "ops/attention/kernels.h"
#include "ops/pooling/lengths.h"

namespace ricci {
namespace {

int64_t end_of_window(int64_t window) {
  if (window < 0) fail("attention: window is {}, expected 0 (none) or more", {window});
  return window ? min(window, Visibility::kEndless) : Visibility::kEndless;
}

}  // namespace

Visibility Visibility::causal(int64_t window) { return {1, 0, end_of_window(window)}; }

Visibility Visibility::not_causal(int64_t window) { return {1, -kEndless, end_of_window(window)}; }

Visibility Visibility::cells(int64_t cell, int64_t lo, int64_t hi, CellRule rule) {
  if (cell < 1 || cell > kMaxTokens) fail("attention: the cell size is {}, expected 1 .. {}", {cell, kMaxTokens});
  if (lo < 0) fail("attention: the window of cells starts {} tokens back, expected 0 or more", {lo});
  if (hi <= lo) fail("attention: the window of cells is {} to {}, expected an end after the start", {lo, hi});
  const int64_t least = min(lo, kEndless) + cell - 1, most = min(hi, kEndless);
  return {cell, least, rule == CellRule::inside ? most : most + cell - 1};
}

std::array<ColumnSlice, 3> thirds(const Arg& qkv_bcx) {
  const Shape& shape = qkv_bcx.shape();
  if (shape.rank() != 3 || shape[2] % 3) fail("attention: the shape is {}, expected q | k | v [b, c, 3 d]", {show(shape)});
  const int64_t d = shape[2] / 3;
  return {ColumnSlice{qkv_bcx, 0, d}, ColumnSlice{qkv_bcx, d, d}, ColumnSlice{qkv_bcx, 2 * d, d}};
}

namespace attention_kernels {
namespace {

constexpr const char* kNames[3] = {"q", "k", "v"};

std::string columns(int64_t offset, int64_t width) { return std::to_string(offset) + " .. " + std::to_string(offset + width - 1); }

// Finds the distinct tensors (the inputs of the op) and the columns of q, k and v in them.
void find_tensors(const char* op, const ColumnSlice* (&slices)[3], Checked& checked) {
  Layout& layout = checked.layout;
  for (int i = 0; i < 3; ++i) {
    const ColumnSlice& slice = *slices[i];
    const int64_t x = slice.tensor.shape()[2], width = slice.width == 0 && slice.offset >= 0 ? x - slice.offset : slice.width;
    if (slice.offset < 0 || width < 1 || slice.offset > x - width)
      fail("{}: {}{} does not have {} columns from column {} on", {op, kNames[i], show(slice.tensor.shape()), width, slice.offset});
    layout.width[i] = width;
    if (const int64_t wanted = layout.width[0] / (i == 0 ? 1 : layout.group); width != wanted && layout.group == 1)
      fail("{}: q has {} columns and {} has {}, expected the same number", {op, wanted, kNames[i], width});
    else if (width != wanted)
      fail("{}: q has {} columns and {} has {}, expected {} ({} query heads share a head of keys and values)",
          {op, layout.width[0], kNames[i], width, wanted, layout.group});
    layout.offset[i] = slice.offset;
    size_t n = 0;
    while (n < checked.inputs.size() && !checked.inputs[n].same_as(slice.tensor)) ++n;
    if (n == checked.inputs.size()) checked.inputs.push_back(slice.tensor);
    layout.tensor[i] = static_cast<int>(n);
  }
  for (int a = 0; a < 3; ++a)
    for (int b = a + 1; b < 3; ++b)
      if (layout.tensor[a] == layout.tensor[b] && !layout.same(a, b) && layout.offset[a] < layout.offset[b] + layout.width[b] &&
          layout.offset[b] < layout.offset[a] + layout.width[a])
        fail("{}: the columns {} of {} and {} of {} overlap, expected equal or disjoint columns",
            {op, columns(layout.offset[a], layout.width[a]), kNames[a], columns(layout.offset[b], layout.width[b]), kNames[b]});
}

void check_options(const char* op, const Visibility& sees, const AttentionOptions& options) {
  if (options.heads < 1) fail("{}: heads is {}, expected at least 1", {op, options.heads});
  if (options.kv_heads < 0 || (options.kv_heads > 0 && options.heads % options.kv_heads))
    fail("{}: kv_heads is {}, expected a divisor of {} heads", {op, options.kv_heads, options.heads});
  if (!(options.scale >= 0 && std::isfinite(options.scale)))
    fail("{}: scale is {}, expected more than 0, or 0 for 1 / sqrt(k)", {op, options.scale});
  if (!(options.dropout >= 0 && options.dropout < 1)) fail("{}: dropout is {}, expected 0 or more and less than 1", {op, options.dropout});
  if (sees.cell < 1 || sees.cell > Visibility::kMaxTokens)
    fail("{}: the keys are cells of {} tokens, expected 1 .. {}", {op, sees.cell, Visibility::kMaxTokens});
  constexpr int64_t kFar = 2 * Visibility::kEndless;  // bounded: distances are added to positions
  if (sees.least < -kFar || sees.least > kFar || sees.most < -kFar || sees.most > kFar)
    fail("{}: the visible keys are {} to {} tokens back, expected -{} .. {}", {op, sees.least, sees.most, kFar, kFar});
}

}  // namespace

Checked check(const char* op, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees,
    const AttentionOptions& options) {
  check_options(op, sees, options);
  Dims dims;
  dims.bind(op, "q_bcx, k_bCy, v_bCz, lengths_b", {q.tensor, k.tensor, v.tensor, optional(i64(options.lengths_b))});
  Checked checked{};
  checked.layout.group = options.kv_heads ? options.heads / options.kv_heads : 1;
  const ColumnSlice* slices[3] = {&q, &k, &v};
  find_tensors(op, slices, checked);
  const int64_t d = checked.layout.width[0];
  if (d % options.heads) fail("{}: there are {} columns, expected a multiple of the {} heads", {op, d, options.heads});
  check_lengths(op, options.lengths_b, dims['C']);
  const int64_t width = d / options.heads;
  const double scale = options.scale > 0 ? options.scale : 1 / std::sqrt(static_cast<double>(width));
  checked.problem = {dims['b'], dims['c'], dims['C'], options.heads, width, sees, scale};
  checked.problem.group = checked.layout.group;
  if (options.lengths_b) checked.problem.lengths = options.lengths_b.data<int64_t>();
  return checked;
}

QueryKeyValue Layout::slices(const std::vector<Tensor>& tensors) const {
  const auto slice = [&](int i) { return ColumnSlice{tensors[static_cast<size_t>(tensor[i])], offset[i], width[i], i == 0 ? 1 : group}; };
  return {slice(0), slice(1), slice(2)};
}

std::vector<Tensor> Layout::gradients(const std::vector<Tensor>& tensors) const {
  std::vector<Tensor> all;
  for (size_t n = 0; n < tensors.size(); ++n) {
    int64_t covered = 0;  // the number of columns in slices; different slices do not overlap
    for (int i = 0; i < 3; ++i) {
      bool first = tensor[i] == static_cast<int>(n);
      for (int before = 0; before < i; ++before) first = first && !same(before, i);
      covered += first ? width[i] : 0;
    }
    all.push_back(covered == tensors[n].shape()[2] ? like(tensors[n]) : zeros_like(tensors[n]));
  }
  return all;
}

}  // namespace attention_kernels
}  // namespace ricci
