// The mean negative log likelihood of many batches.
#pragma once
#include <cmath>
#include <functional>

#include "models/model.h"
#include "models/training/micro_batch.h"

namespace ricci {

struct Evaluation {
  double nats_per_token = 0;
  int64_t tokens = 0;
  double perplexity() const { return std::exp(nats_per_token); }
};

// Over the batches batch(0) .. batch(count - 1), of which each is asked for once. `after_batch(done)` is called after each.
// Nothing is recorded, dropout is off.
Evaluation evaluate(const Model& model, int64_t count, const std::function<MicroBatch(int64_t index)>& batch,
                    const std::function<void(int64_t done)>& after_batch = {});

}  // namespace ricci
