// The sequences that are computed together: a training step reads one micro-batch or several, an evaluation many.
#pragma once
#include "models/layers/inputs.h"

namespace ricci {

struct MicroBatch {
  Inputs inputs;       // on the device of the model
  int64_t scored = 0;  // targets other than -1, which the loss is the mean of
};

// Counts what is scored.
inline MicroBatch micro_batch_from(const Inputs& inputs) { return {inputs, targets_in(inputs.targets)}; }

}  // namespace ricci
