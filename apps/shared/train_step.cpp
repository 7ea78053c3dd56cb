#include "apps/shared/train_step.h"

#include <cmath>

#include "apps/shared/batch_tensors.h"
#include "autograd/gradient_sum.h"
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

TrainStep::TrainStep(Model& model, Device device, uint64_t seed, bool graph)
    : model_(model), parameters_(model.parameters()), device_(device), seed_(seed) {
  if (graph) graph_ = std::make_unique<StepGraph>(device, parameters_);
}

// Dropout reads the streams from step * 2^32 on.
Tensor TrainStep::part_loss(const PartInputs& inputs, int64_t step, size_t part) const {
  set_random_state({seed_, static_cast<uint64_t>(step) << 32, part});
  return model_.loss(inputs.ids_bc, inputs.targets_bc);
}

std::vector<PartInputs> TrainStep::inputs_of(const std::vector<Batch>& parts) const {
  const int64_t n = scored(parts);
  std::vector<PartInputs> inputs;
  for (const Batch& part : parts) {
    const auto [ids_bc, targets_bc] = tensors_of(part, device_);
    inputs.push_back({ids_bc, targets_bc, scalar(weight_of(part, n), device_)});
  }
  return inputs;
}

std::vector<Tensor> TrainStep::compute(const std::vector<PartInputs>& inputs, int64_t step) const {
  std::vector<Tensor> losses;  // read after the last part, so that a GPU need not be waited for between two
  const bool several = inputs.size() > 1;
  GradientSum sum(parameters_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tape tape;
    const Tensor loss = part_loss(inputs[i], step, i);
    tape.backward(loss, inputs[i].weight);
    if (several) sum.take();
    losses.push_back(loss.detached());
    if (graph_ && random_state().next_stream != static_cast<uint64_t>(step) << 32)
      fail("cuda_graph: the step draws random numbers, and they would be the same at every step");
  }
  if (several) sum.give();
  return losses;
}

double TrainStep::forward_backward(const std::vector<Batch>& parts, int64_t step) const {
  const Training training;
  const std::vector<PartInputs> inputs = inputs_of(parts);
  const auto work = [&](const std::vector<PartInputs>& from) { return compute(from, step); };
  const std::vector<Tensor> losses = graph_ ? graph_->run(inputs, work) : work(inputs);
  const int64_t n = scored(parts);
  double nats = 0;
  for (size_t i = 0; i < parts.size(); ++i) nats += item(losses[i]) * weight_of(parts[i], n);
  return nats;
}

void TrainStep::explain_nonfinite(const std::vector<Batch>& parts, int64_t step, double loss) const {
  const Training training;
  const std::string what = std::isfinite(loss) ? "the gradient is not finite" : format_message("the loss is {}", {loss});
  for (const Parameter* p : parameters_) p->grad = {};  // a NaN that is there already would be found in the op that adds to it
  try {
    const std::vector<PartInputs> inputs = inputs_of(parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      Tape tape({.find_nonfinite = true});
      const Tensor loss = part_loss(inputs[i], step, i);
      tape.backward(loss, inputs[i].weight);
    }
  } catch (const Error& error) {
    fail("step {}: {}: {}", {step, what, error.what()});
  }
  fail("step {}: {}", {step, what});
}

}  // namespace ricci::apps
