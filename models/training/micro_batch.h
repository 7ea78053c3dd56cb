// The sequences that are computed together: a training step reads one micro-batch or several, an evaluation many.
#pragma once
#include "models/inputs.h"

namespace ricci {

struct MicroBatch {
  Inputs inputs;       // on the device of the model
  int64_t scored = 0;  // targets other than -1, which the loss is the mean of
};

}  // namespace ricci
