// One training step: forward_backward() computes the gradient, and run_unless() adds the sum over ranks, the clipping and the update. The
// loss and the norm stay on the device until the end, so a GPU never waits for the CPU.
#include "models/training/train_step.h"

#include <cmath>
#include <numeric>
#include <string>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"
#include "models/training/parameter_groups.h"
#include "models/training/sum_gradients.h"
#include "ops/elements/arithmetic.h"
#include "ops/embedding/embedding.h"

namespace ricci {
namespace {

std::vector<Batch> on_device(std::vector<Batch> batches, Device device) {
  for (Batch& batch : batches) batch = to(batch, device);
  return batches;
}

}  // namespace

// One tape per micro-batch limits the memory of activations. Gradients accumulate in Parameter::grad. The loss of a micro-batch is a mean
// over its tokens, so its weight is its share of the step's tokens.
Tensor forward_backward(const Model& model, const std::vector<Batch>& micro_batches, const std::vector<Tensor>& weights, RandomState random,
    const TapeOptions& options) {
  const Training training;
  const Tensor loss = zeros({}, Dtype::f64, weights.at(0).device());
  for (size_t i = 0; i < micro_batches.size(); ++i) {
    set_random_state(random);
    Tape tape(options);
    const Tensor nats = model.loss(micro_batches[i]);
    tape.backward(nats, weights[i]);
    add_to(loss, nats.detached() * weights[i]);
    ++random.micro_batch;
  }
  return loss;
}

std::optional<StepResult> TrainStep::run_unless(
    bool (*stop)(), const std::vector<Batch>& micro_batches, int64_t step, double learning_rate) {
  for (const Parameter* p : parameters_)
    if (p->grad) fail("train step: {} still has a gradient from an earlier backward pass", {p->path});
  if (graph_ || ranks_.count() > 1) stop = nullptr;
  const RandomState before = random_state(), random = graph_ ? graph_->in_memory(random_state_at(step)) : random_state_at(step);
  if (graph_) optimizer_.begin_step(learning_rate);  // a recorded step reads the rate from memory
  const bool has_norms = options_.has_norms(step);
  NamedNumbers norms;
  const auto take_step = [&](const std::vector<Batch>& batches, const std::vector<Tensor>& weights) -> std::vector<Tensor> {
    Tensor loss;
    if (!finish_unless(stop, [&] { loss = forward_backward(model_, batches, weights, random); })) return {};
    sum_gradients(parameters_, loss, options_.reduce_dtype, ranks_);
    if (has_norms) add_norms("grad_norm", parameters_, &Parameter::grad, norms);
    if (!graph_) optimizer_.begin_step(learning_rate);
    return {loss, optimizer_.update(options_.clip, loss)};  // updates nothing if the loss is not finite
  };
  const std::vector<Tensor> weights = weigh(model_, micro_batches, device_, ranks_);
  const std::vector<Batch> batches = on_device(micro_batches, device_);
  const std::vector<Tensor> results = graph_ ? graph_->run(batches, weights, take_step) : take_step(batches, weights);
  if (results.empty()) {
    for (const Parameter* p : parameters_) p->grad = {};
    set_random_state(before);
    return {};
  }
  set_random_state(random_state_at(step + 1));
  if (has_norms) add_norms("weight_norm", parameters_, &Parameter::unrounded, norms);
  return StepResult{item(results[0]), item(results[1]), norms};  // item() waits for a GPU
}

TrainStep::TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainStepOptions& options, Ranks& ranks)
    : model_(model), parameters_(model.parameters()), device_(device), options_(options), optimizer_(optimizer), ranks_(ranks) {
  if (!options.cuda_graph) return;
  if (ranks.count() > 1) fail("cuda_graph: is not supported with multiple ranks");
  if (options.norms_every > 0) fail("norms_every: is not supported with cuda_graph");
  graph_ = std::make_unique<StepGraph>(device);
}

// Every step uses different random numbers: its dropout uses the streams from step * 2^32 on.
RandomState TrainStep::random_state_at(int64_t step) const {
  return {options_.seed, static_cast<uint64_t>(step) << 32, static_cast<uint64_t>(options_.first_micro_batch)};
}

std::vector<Tensor> weigh(const Model& model, const std::vector<Batch>& micro_batches, Device device, Ranks& ranks) {
  const bool only_one = micro_batches.size() == 1 && ranks.count() == 1;  // its weight is 1, and counting could wait for a GPU
  std::vector<double> counts;
  for (const Batch& each : micro_batches) counts.push_back(static_cast<double>(only_one ? each.scored > 0 : model.counted(each)));
  const double all = ranks.sum_numbers({std::accumulate(counts.begin(), counts.end(), 0.0)})[0];
  std::vector<Tensor> weights;
  for (const double count : counts) fill(weights.emplace_back(Shape{}, Dtype::f64, device), all > 0 ? count / all : 0);
  return weights;
}

Range share_of(int64_t micro_batches, const Ranks& ranks) {
  const int64_t rank = ranks.rank(), count = ranks.count();
  return {micro_batches * rank / count, micro_batches * (rank + 1) / count};
}

// Each rank searches its own micro-batches. The error of the first rank that found the op is reported.
void TrainStep::explain_nonfinite(const std::vector<Batch>& micro_batches, int64_t step, double loss) const {
  const std::string symptom = std::isfinite(loss) ? "the gradient is not finite" : format_message("the loss is {}", {loss});
  const std::vector<Tensor> weights = weigh(model_, micro_batches, device_, ranks_);
  std::string found;
  for (const Parameter* p : parameters_) p->grad = {};  // an old NaN would be found first
  try {
    check_embedding_ids(device_);  // a GPU cannot throw: it recorded the first invalid id and returned NaN
    forward_backward(model_, on_device(micro_batches, device_), weights, random_state_at(step), {.find_nonfinite = true});
  } catch (const Error& error) {
    found = error.what();
  }
  ranks_.barrier();  // waits without a limit: the ranks' searches take different times
  for (const std::string& each : ranks_.from_all(found))
    if (!each.empty()) fail("step {}: {}: {}", {step + 1, symptom, each});
  fail("step {}: {}", {step + 1, symptom});
}

}  // namespace ricci
