// What every family of models reads.
#pragma once
#include "core/dims.h"
#include "core/error.h"
#include "core/tensor.h"
#include "cuda/device/device.h"

namespace ricci {

struct Inputs {
  Tensor ids_bc;       // i64 [b c]: tokens
  Tensor targets{};    // i64: of a language model [b c], of a classifier [b]; -1: does not count. Only the loss reads them
  Tensor lengths_b{};  // i64 [b], 0 .. c: what stands behind is padding, which no position hears; empty: there is none
};

inline void check_targets(const Tensor& targets, const Tensor& ids_bc) {
  if (!(targets.shape() == ids_bc.shape())) fail("model: targets {} for ids {}", {show(targets.shape()), show(ids_bc.shape())});
}

inline void check_positions(int64_t length, int64_t ctx) {
  if (length > ctx) fail("model: {} positions, but the context it was built for is {}", {length, ctx});
}

// How many targets are not -1, of each sequence those from position `first` on.
inline int64_t targets_in(const Tensor& targets, int64_t first = 0) {
  const Tensor host = to(targets, Device::cpu);
  const int64_t length = targets.shape()[-1];
  int64_t count = 0;
  for (int64_t i = 0; i < host.size(); ++i) count += i % length >= first && host.data<int64_t>()[i] != -1;
  return count;
}

}  // namespace ricci
