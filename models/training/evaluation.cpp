#include "models/training/evaluation.h"

#include <algorithm>

#include "autograd/tape.h"
#include "cuda/device/device.h"
#include "models/drop.h"

namespace ricci {

Evaluation evaluate(const Model& model, int64_t count, const std::function<MicroBatch(int64_t)>& batch,
                    const std::function<void(int64_t)>& after_batch) {
  const NoTape unrecorded;
  const Training off(false);
  Evaluation total;
  double nats = 0;
  for (int64_t i = 0; i < count; ++i) {
    const MicroBatch one = batch(i);
    nats += item(model.loss(one.inputs)) * static_cast<double>(one.scored);
    total.tokens += one.scored;
    if (after_batch) after_batch(i + 1);
  }
  total.nats_per_token = nats / static_cast<double>(std::max<int64_t>(1, total.tokens));
  return total;
}

}  // namespace ricci
