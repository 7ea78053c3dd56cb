#include "apps/shared/train_step.h"

#include "apps/shared/batch_tensors.h"
#include "autograd/random.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/arithmetic.h"
#include "models/training.h"

namespace ricci::apps {
namespace {

int64_t scored(const std::vector<Batch>& parts) {
  int64_t n = 0;
  for (const Batch& part : parts) n += part.scored;
  return n;
}

// What the mean of a part weighs in the mean of the step.
double weight_of(const Batch& part, int64_t scored) { return scored ? static_cast<double>(part.scored) / static_cast<double>(scored) : 0; }

Tensor scalar(double value, Device device) {
  const Tensor t({}, Dtype::f64, device);
  fill(t, value);
  return t;
}

}  // namespace

Cut cut_of(const TrainConfig& config) {
  if (config.batch_invariant) return {1, config.batch * config.accumulation};
  return {config.batch, config.accumulation};
}

std::vector<Batch> batches_of_step(const RandomCrops& crops, const TrainConfig& config, int64_t step) {
  std::vector<Batch> parts;
  for (int64_t part = 0; part < cut_of(config).parts; ++part) parts.push_back(crops.at(step, part));
  return parts;
}

// Dropout reads the streams from step * 2^32 on.
Tensor TrainStep::part_loss(const Batch& batch, int64_t step, size_t part) const {
  set_random_state({seed_, static_cast<uint64_t>(step) << 32, part});
  const auto [ids_bc, targets_bc] = tensors_of(batch, device_);
  return model_.loss(ids_bc, targets_bc);
}

double TrainStep::forward_backward(const std::vector<Batch>& parts, int64_t step) const {
  const Training training;
  const int64_t n = scored(parts);
  std::vector<Tensor> losses;  // read after the last part, so that a GPU need not be waited for between two
  for (size_t i = 0; i < parts.size(); ++i) {
    Tape tape;
    const Tensor loss = part_loss(parts[i], step, i);
    tape.backward(loss, scalar(weight_of(parts[i], n), device_));
    losses.push_back(loss.detached());
  }
  double nats = 0;
  for (size_t i = 0; i < parts.size(); ++i) nats += item(losses[i]) * weight_of(parts[i], n);
  return nats;
}

void TrainStep::explain_nonfinite(const std::vector<Batch>& parts, int64_t step, double loss) const {
  const Training training;
  try {
    for (size_t i = 0; i < parts.size(); ++i) {
      Tape tape({.find_nonfinite = true});
      const Tensor part = part_loss(parts[i], step, i);
      tape.backward(part, scalar(weight_of(parts[i], scored(parts)), device_));
    }
  } catch (const Error& error) {
    fail("step {}: the loss is {}: {}", {step, loss, error.what()});
  }
  fail("step {}: the loss or its gradient is not finite: {}", {step, loss});
}

}  // namespace ricci::apps
