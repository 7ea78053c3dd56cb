// Rotary positions of a stack (ops/rotary/rotary.h): the table of cosines and sines that its blocks share. The table grows with the
// number of positions: a full table for a context of 131,072 would be larger than the cache of a short text.
#pragma once
#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <vector>

#include "ops/rotary/rotary.h"

namespace ricci {

class RotaryTable {
 public:
  RotaryTable(const RotaryFrequencies& frequencies, int64_t ctx) : frequencies_(frequencies), ctx_(ctx) {}

  // Returns a table of at least `positions` rows for r columns of a head. It is f64 if `dtype` is f64, and f32 for other dtypes.
  Tensor rows(int64_t positions, int64_t r, Dtype dtype, Device device) {
    const Dtype kept = dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
    const std::lock_guard lock(mutex_);
    for (const Tensor& table : tables_)
      if (table.dtype() == kept && table.device() == device && table.shape()[0] >= positions && table.shape()[1] == r) return table;
    const auto doubled = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(positions)));
    return tables_.emplace_back(rotary_table(std::max(positions, std::min(doubled, ctx_)), r, frequencies_, kept, device));
  }

 private:
  RotaryFrequencies frequencies_;
  int64_t ctx_;
  std::vector<Tensor> tables_;  // shorter tables are kept: a recorded step (cuda/device/graph.h) can use them
  std::mutex mutex_;
};

struct Rope {
  double fraction = 1;
  std::shared_ptr<RotaryTable> table{};  // null without rotary positions

  // The number of rotated columns in a head of `width` columns.
  int64_t columns(int64_t width) const { return table ? static_cast<int64_t>(fraction * static_cast<double>(width)) : 0; }
};

}  // namespace ricci
