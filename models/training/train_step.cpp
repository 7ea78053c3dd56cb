#include "models/training/train_step.h"

#include <cmath>
#include <numeric>
#include <string>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"
#include "models/training/sum_gradients.h"
#include "ops/elements/arithmetic.h"
#include "ops/embedding/embedding.h"

namespace ricci {
namespace {

Tensor scalar(double value, Device device) {
  const Tensor t({}, Dtype::f64, device);
  fill(t, value);
  return t;
}

}  // namespace

Range share_of(int64_t micro_batches, const Ranks& ranks) {
  const int64_t rank = ranks.rank(), count = ranks.count();
  return {micro_batches * rank / count, micro_batches * (rank + 1) / count};
}

TrainStep::TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainStepOptions& options, Ranks& ranks)
    : model_(model), parameters_(model.parameters()), device_(device), options_(options), optimizer_(&optimizer), ranks_(ranks) {
  if (!options.cuda_graph) return;
  if (ranks.count() > 1) fail("cuda_graph: not with several ranks yet");
  graph_ = std::make_unique<StepGraph>(device);
}

// Dropout reads the streams from step * 2^32 on.
RandomState TrainStep::random_of(int64_t step) const {
  return {options_.seed, static_cast<uint64_t>(step) << 32, static_cast<uint64_t>(options_.first_micro_batch)};
}

// The loss of a micro-batch is a mean over its counted tokens. Its weight is its share of the tokens that are counted in the whole step, on
// all ranks, so the weighted losses add up to the mean over all tokens.
std::vector<WeightedInputs> TrainStep::weighted(const std::vector<MicroBatch>& micro_batches) const {
  const bool only_one = micro_batches.size() == 1 && ranks_.count() == 1;
  std::vector<double> counts;
  for (const MicroBatch& each : micro_batches)  // counting may have to wait for a GPU
    counts.push_back(static_cast<double>(only_one ? each.scored > 0 : model_.counted(each.inputs, each.scored)));
  const double all = ranks_.sum_numbers({std::accumulate(counts.begin(), counts.end(), 0.0)})[0];
  std::vector<WeightedInputs> weighted;
  for (size_t i = 0; i < micro_batches.size(); ++i)
    weighted.push_back({micro_batches[i].inputs, scalar(all > 0 ? counts[i] / all : 0, device_)});
  return weighted;
}

// The definition of a step's gradient.
Tensor TrainStep::loss_and_gradient(
    const std::vector<WeightedInputs>& micro_batches, RandomState random, const TapeOptions& options) const {
  const Training training;
  const Tensor loss = zeros({}, Dtype::f64, device_);
  for (const auto& [inputs, weight] : micro_batches) {
    set_random_state(random);
    Tape tape(options);
    const Tensor nats = model_.loss(inputs);
    tape.backward(nats, weight);
    add_to(loss, nats.detached() * weight);
    ++random.micro_batch;
  }
  return loss;
}

double TrainStep::forward_backward(const std::vector<MicroBatch>& micro_batches, int64_t step) const {
  return item(loss_and_gradient(weighted(micro_batches), random_of(step)));
}

StepResult TrainStep::run(
    const std::vector<MicroBatch>& micro_batches, int64_t step, double learning_rate, const std::function<void()>& meanwhile) {
  for (const Parameter* p : parameters_)
    if (p->grad) fail("train step: the gradient of {} is left from before", {p->path});
  const RandomState random = graph_ ? graph_->in_memory(random_of(step)) : random_of(step);
  if (graph_) optimizer_->begin_step(learning_rate);  // writes the rate to memory, where a recorded step reads it
  const auto compute = [&](const std::vector<WeightedInputs>& inputs) -> std::vector<Tensor> {
    const Tensor loss = loss_and_gradient(inputs, random);
    if (ranks_.count() > 1) sum_gradients(parameters_, loss, options_.reduce_dtype, ranks_);
    const StopWhen never([] { return false; });  // an update is made as a whole, or not begun
    if (!graph_) optimizer_->begin_step(learning_rate);
    return {loss, optimizer_->update(options_.clip, loss)};
  };
  const std::vector<WeightedInputs> inputs = weighted(micro_batches);
  const std::vector<Tensor> results = graph_ ? graph_->run(inputs, compute) : compute(inputs);
  set_random_state(random_of(step + 1));
  meanwhile();
  return {item(results[0]), item(results[1])};  // only now is a GPU waited for
}

// Each rank searches its own micro-batches. The first error of a rank that found the op is the error of all.
void TrainStep::explain_nonfinite(const std::vector<MicroBatch>& micro_batches, int64_t step, double loss) const {
  const std::string what = std::isfinite(loss) ? "the gradient is not finite" : format_message("the loss is {}", {loss});
  const std::vector<WeightedInputs> inputs = weighted(micro_batches);
  std::string found;
  for (const Parameter* p : parameters_) p->grad = {};  // a NaN that is there already would be found in the op that adds to it
  try {
    check_embedding_ids(device_);  // a GPU has noted the first bad id, which made the NaN
    loss_and_gradient(inputs, random_of(step), {.find_nonfinite = true});
  } catch (const Error& error) {
    found = error.what();
  }
  ranks_.barrier();  // a search takes as long as its micro-batches
  for (const std::string& each : ranks_.from_all(found))
    if (!each.empty()) fail("step {}: {}: {}", {step + 1, what, each});
  fail("step {}: {}", {step + 1, what});
}

}  // namespace ricci
