#include "apps/shared/train_step.h"

#include <cmath>

#include "apps/shared/batch_tensors.h"
#include "autograd/gradient_sum.h"
#include "core/error.h"
#include "cuda/arithmetic.h"
#include "cuda/device.h"
#include "models/training.h"
#include "ops/arithmetic.h"

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

TrainStep::TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainConfig& config) : TrainStep(model, device, config.seed) {
  optimizer_ = &optimizer, clip_ = config.clip;
  if (!config.cuda_graph) return;
  graph_ = std::make_unique<StepGraph>(device);
  first_stream_ = Tensor({}, Dtype::i64, device);
}

// Dropout reads the streams from step * 2^32 on.
RandomState TrainStep::random_of(int64_t step) const { return {seed_, static_cast<uint64_t>(step) << 32}; }

// The same streams, counted from a number that recorded kernels find in the device's memory.
RandomState TrainStep::random_in_memory(int64_t step) const {
  const Tensor first({}, Dtype::i64);
  const RandomState random = random_of(step);
  *first.data<int64_t>() = static_cast<int64_t>(random.next_stream);
  copy(first_stream_, first);
  return {random.seed, 0, 0, reinterpret_cast<const uint64_t*>(first_stream_.data<int64_t>())};
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

Tensor TrainStep::gradient(const std::vector<PartInputs>& inputs, RandomState random, TapeOptions options) const {
  const Training training;
  const Tensor total = zeros({}, Dtype::f64, device_);
  const bool several = inputs.size() > 1;
  GradientSum sum(parameters_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& [ids_bc, targets_bc, weight] = inputs[i];
    random.part = i;
    set_random_state(random);
    Tape tape(options);
    const Tensor loss = model_.loss(ids_bc, targets_bc);
    tape.backward(loss, weight);
    if (several) sum.take();
    add_to(total, loss.detached() * weight);
  }
  if (several) sum.give();
  return total;
}

double TrainStep::forward_backward(const std::vector<Batch>& parts, int64_t step) const {
  return item(gradient(inputs_of(parts), random_of(step)));
}

StepResult TrainStep::run(const std::vector<Batch>& parts, int64_t step, double learning_rate) {
  for (const Parameter* p : parameters_)
    if (p->grad) fail("train step: the gradient of {} is left from before", {p->path});
  const std::vector<PartInputs> inputs = inputs_of(parts);
  optimizer_->begin_step(learning_rate);
  const RandomState random = graph_ ? random_in_memory(step) : random_of(step);
  const auto work = [&](const std::vector<PartInputs>& from) {
    const Tensor loss = gradient(from, random);
    return std::vector<Tensor>{loss, optimizer_->update(clip_, loss)};
  };
  const std::vector<Tensor> results = graph_ ? graph_->run(inputs, work) : work(inputs);
  set_random_state(random_of(step + 1));
  return {item(results[0]), item(results[1])};  // only now is a GPU waited for
}

void TrainStep::explain_nonfinite(const std::vector<Batch>& parts, int64_t step, double loss) const {
  const std::string what = std::isfinite(loss) ? "the gradient is not finite" : format_message("the loss is {}", {loss});
  for (const Parameter* p : parameters_) p->grad = {};  // a NaN that is there already would be found in the op that adds to it
  try {
    gradient(inputs_of(parts), random_of(step), {.find_nonfinite = true});
  } catch (const Error& error) {
    fail("step {}: {}: {}", {step, what, error.what()});
  }
  fail("step {}: {}", {step, what});
}

}  // namespace ricci::apps
