#include "models/training/train_step.h"

#include <cmath>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"
#include "ops/elements/arithmetic.h"

namespace ricci {
namespace {

// The weight of each micro-batch's mean in the mean of the step: its share of the tokens that the loss counts.
std::vector<double> weights_of(const std::vector<MicroBatch>& micro_batches, const Model& model) {
  if (micro_batches.size() == 1) return {micro_batches[0].scored ? 1.0 : 0.0};  // counting may have to wait for a GPU
  std::vector<double> weights;
  double all = 0;
  for (const MicroBatch& one : micro_batches) all += weights.emplace_back(static_cast<double>(model.counted(one.inputs, one.scored)));
  for (double& weight : weights) weight = all > 0 ? weight / all : 0;
  return weights;
}

Tensor scalar(double value, Device device) {
  const Tensor t({}, Dtype::f64, device);
  fill(t, value);
  return t;
}

void overwrite(const Tensor& fixed, const Tensor& next) {
  if (static_cast<bool>(fixed) != static_cast<bool>(next) || !(fixed.shape() == next.shape()))
    fail("cuda_graph: a batch of {} after batches of {}", {show(next.shape()), show(fixed.shape())});
  if (fixed) copy(fixed, next);
}

}  // namespace

void StepGraph::take_inputs(const std::vector<WeightedInputs>& batches) {
  if (inputs_.empty()) {
    inputs_ = batches;
    return;
  }
  if (batches.size() != inputs_.size()) fail("cuda_graph: {} batches after {}", {batches.size(), inputs_.size()});
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto& [inputs, weight] = inputs_[i];
    overwrite(inputs.ids_bc, batches[i].inputs.ids_bc);
    overwrite(inputs.targets, batches[i].inputs.targets);
    overwrite(inputs.lengths_b, batches[i].inputs.lengths_b);
    overwrite(weight, batches[i].weight);
  }
}

const std::vector<Tensor>& StepGraph::run(const std::vector<WeightedInputs>& inputs, const Compute& compute) {
  take_inputs(inputs);
  const auto work = [&] { results_ = compute(inputs_); };
  ++steps_;
  if (steps_ <= 3) results_.clear();
  if (steps_ == 1) work();
  if (steps_ == 2) graph_.measure(work);
  if (steps_ == 3) graph_.record(work);
  if (steps_ >= 3) graph_.launch();
  return results_;
}

TrainStep::TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainStepOptions& options)
    : TrainStep(model, device, options.seed) {
  optimizer_ = &optimizer;
  options_ = options;
  if (options.max_ranks > 1) sums_ = std::make_unique<LeafSums>(model.trained_parameters(), options.max_ranks, Range{0, options.max_ranks});
  if (!options.cuda_graph) return;
  graph_ = std::make_unique<StepGraph>(device);
  first_stream_ = Tensor({}, Dtype::i64, device);
}

// Dropout reads the streams from step * 2^32 on.
RandomState TrainStep::random_of(int64_t step) const { return {options_.seed, static_cast<uint64_t>(step) << 32}; }

// The same streams, counted from a number that recorded kernels find in the device's memory.
RandomState TrainStep::random_in_memory(int64_t step) const {
  const Tensor first({}, Dtype::i64);
  const RandomState random = random_of(step);
  *first.data<int64_t>() = static_cast<int64_t>(random.next_stream);
  copy(first_stream_, first);
  return {random.seed, 0, 0, reinterpret_cast<const uint64_t*>(first_stream_.data<int64_t>())};
}

std::vector<WeightedInputs> TrainStep::weighted(const std::vector<MicroBatch>& micro_batches) const {
  const std::vector<double> weights = weights_of(micro_batches, model_);
  std::vector<WeightedInputs> all;
  for (size_t i = 0; i < micro_batches.size(); ++i) all.push_back({micro_batches[i].inputs, scalar(weights[i], device_)});
  return all;
}

Share TrainStep::share_of(size_t micro_batches) const {
  const auto all = static_cast<int64_t>(micro_batches);
  if (all < options_.max_ranks) fail("train step: max_ranks is {}, but there are {} micro-batches", {options_.max_ranks, all});
  return Share::of_rank(all, options_.max_ranks);
}

Tensor TrainStep::gradient(
    const std::vector<WeightedInputs>& micro_batches, const Share& share, RandomState random, LeafSums* sums, TapeOptions options) const {
  const Training training;
  const Tensor total = zeros({}, Dtype::f64, device_);
  if (sums) sums->begin();
  for (int64_t leaf = share.leaves.lo; leaf < share.leaves.hi; ++leaf) {
    if (sums && leaf > share.leaves.lo) sums->end_leaf();
    const Range of_leaf = share.micro_batches(leaf);
    for (int64_t i = of_leaf.lo; i < of_leaf.hi; ++i) {
      const auto& [inputs, weight] = micro_batches[static_cast<size_t>(i)];
      random.micro_batch = static_cast<uint64_t>(i);
      set_random_state(random);
      Tape tape(options);
      const Tensor loss = model_.loss(inputs);
      tape.backward(loss, weight);
      add_to(total, loss.detached() * weight);
    }
  }
  for (size_t p = 0; sums && p < sums->parameters(); ++p) sums->finish(p);
  return total;
}

double TrainStep::forward_backward(const std::vector<MicroBatch>& micro_batches, int64_t step) const {
  return item(gradient(weighted(micro_batches), share_of(micro_batches.size()), random_of(step), sums_.get()));
}

StepResult TrainStep::run(const std::vector<MicroBatch>& micro_batches, int64_t step, double learning_rate) {
  for (const Parameter* p : parameters_)
    if (p->grad) fail("train step: the gradient of {} is left from before", {p->path});
  const std::vector<WeightedInputs> inputs = weighted(micro_batches);
  const Share share = share_of(micro_batches.size());
  optimizer_->begin_step(learning_rate);
  const RandomState random = graph_ ? random_in_memory(step) : random_of(step);
  const auto work = [&](const std::vector<WeightedInputs>& from) {
    const Tensor loss = gradient(from, share, random, sums_.get());
    return std::vector<Tensor>{loss, optimizer_->update(options_.clip, loss)};
  };
  const std::vector<Tensor> results = graph_ ? graph_->run(inputs, work) : work(inputs);
  set_random_state(random_of(step + 1));
  return {item(results[0]), item(results[1])};  // only now is a GPU waited for
}

void TrainStep::explain_nonfinite(const std::vector<MicroBatch>& micro_batches, int64_t step, double loss) const {
  const std::string what = std::isfinite(loss) ? "the gradient is not finite" : format_message("the loss is {}", {loss});
  for (const Parameter* p : parameters_) p->grad = {};  // a NaN that is there already would be found in the op that adds to it
  try {
    const Share one_leaf = Share::of_rank(static_cast<int64_t>(micro_batches.size()), 1);
    gradient(weighted(micro_batches), one_leaf, random_of(step), nullptr, {.find_nonfinite = true});
  } catch (const Error& error) {
    fail("step {}: {}: {}", {step + 1, what, error.what()});
  }
  fail("step {}: {}", {step + 1, what});
}

}  // namespace ricci
