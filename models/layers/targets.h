// Counts and checks the targets of a batch.
#pragma once
#include "core/batch.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci {

// Counts the targets other than kNoTarget at positions from `first` on.
inline int64_t count_targets(const Tensor& targets, int64_t first = 0) {
  const Tensor host = to_host(targets);
  const int64_t length = targets.shape()[-1];
  int64_t count = 0;
  for (int64_t i = 0; i < host.size(); ++i) count += i % length >= first && host.data<int64_t>()[i] != kNoTarget;
  return count;
}

// A batch with its targets counted.
inline Batch make_batch(const Tensor& ids_bc, const Tensor& targets, const Tensor& lengths_b = {}) {
  return {ids_bc, targets, lengths_b, count_targets(targets)};
}

// Error: the targets do not have the shape of the ids.
inline void check_targets(const Batch& batch) {
  const Shape &targets = batch.targets.shape(), &ids = batch.ids_bc.shape();
  if (!(targets == ids)) fail("model: targets are {}, expected the shape of the ids {}", {show(targets), show(ids)});
}

}  // namespace ricci
