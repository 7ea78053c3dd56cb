// The sequences that are computed together: a training step reads one micro-batch or several, an evaluation many.
#pragma once
#include "cuda/device/device.h"
#include "models/inputs.h"

namespace ricci {

struct MicroBatch {
  Inputs inputs;       // on the device of the model
  int64_t scored = 0;  // targets other than -1, which the loss is the mean of
};

// Counts what is scored.
inline MicroBatch micro_batch_from(const Inputs& inputs) {
  const Tensor targets = to(inputs.targets, Device::cpu);
  int64_t scored = 0;
  for (int64_t i = 0; i < targets.size(); ++i) scored += targets.data<int64_t>()[i] != -1;
  return {inputs, scored};
}

}  // namespace ricci
