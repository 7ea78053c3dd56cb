#include "apps/shared/evaluation.h"

#include <algorithm>

#include "apps/shared/batch_tensors.h"
#include "autograd/tape.h"
#include "models/training.h"

namespace ricci::apps {

Evaluation evaluate(const Model& model, const Windows& windows, Device device, int64_t max_batches,
                    const std::function<void(int64_t, int64_t)>& after_batch) {
  const NoTape unrecorded;
  const Training off(false);
  const int64_t batches = max_batches > 0 ? std::min(max_batches, windows.batches()) : windows.batches();
  Evaluation total;
  double nats = 0;
  for (int64_t i = 0; i < batches; ++i) {
    const Batch batch = windows.at(i);
    const auto [ids_bc, targets_bc] = tensors_of(batch, device);
    nats += item(model.loss(ids_bc, targets_bc)) * static_cast<double>(batch.scored);
    total.tokens += batch.scored;
    if (after_batch) after_batch(i + 1, batches);
  }
  total.nats_per_token = nats / static_cast<double>(std::max<int64_t>(1, total.tokens));
  return total;
}

}  // namespace ricci::apps
