// The mean negative log likelihood of a text.
#pragma once
#include <cmath>
#include <functional>

#include "data/batches.h"
#include "models/model.h"

namespace ricci::apps {

struct Evaluation {
  double nats_per_token = 0;
  int64_t tokens = 0;
  double perplexity() const { return std::exp(nats_per_token); }
};

// Over all windows, or the first `max_batches` batches of them when that is not 0. `after_batch(done, all)` is called
// after each batch. Nothing is recorded, dropout is off.
Evaluation evaluate(const Model& model, const Windows& windows, Device device, int64_t max_batches = 0,
                    const std::function<void(int64_t done, int64_t all)>& after_batch = {});

}  // namespace ricci::apps
