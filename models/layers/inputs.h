// The inputs of every model, and of a training step. Lengths and targets are apart, because a prompt has no targets.
#pragma once
#include "core/dims.h"
#include "core/error.h"
#include "core/tensor.h"
#include "cuda/device/device.h"

namespace ricci {

struct Inputs {
  Tensor ids_bc;       // i64 [b c]: tokens
  Tensor targets{};    // i64 [b c], for a classifier [b]; -1 does not count. Only the loss reads them
  Tensor lengths_b{};  // i64 [b], 0 .. c: positions from there on are padding and are not read; empty without padding
};

inline void check_targets(const Tensor& targets, const Tensor& ids_bc) {
  if (!(targets.shape() == ids_bc.shape())) fail("model: targets {} for ids {}", {show(targets.shape()), show(ids_bc.shape())});
}

inline void check_positions(int64_t length, int64_t ctx) {
  if (length > ctx) fail("model: {} positions, but the context it was built for is {}", {length, ctx});
}

// The number of targets other than -1 at positions from `first` on.
inline int64_t targets_in(const Tensor& targets, int64_t first = 0) {
  const Tensor host = to(targets, Device::cpu);
  const int64_t length = targets.shape()[-1];
  int64_t count = 0;
  for (int64_t i = 0; i < host.size(); ++i) count += i % length >= first && host.data<int64_t>()[i] != -1;
  return count;
}

// Sequences that are computed together. A training step has one or more micro-batches, because a large batch does not fit into memory.
struct MicroBatch {
  Inputs inputs;       // on the device of the model
  int64_t scored = 0;  // number of targets other than -1
};

// A micro-batch as a training step reads it.
struct WeightedInputs {
  Inputs inputs;
  Tensor weight;  // f64 scalar: the weight of the micro-batch's mean loss in the mean loss of the step
};

// Counts the scored targets.
inline MicroBatch micro_batch_from(const Inputs& inputs) { return {inputs, targets_in(inputs.targets)}; }

}  // namespace ricci
