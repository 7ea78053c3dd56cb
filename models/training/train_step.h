// One optimizer step: the gradient, summed over micro-batches and over ranks (processes), and the update.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "autograd/tape.h"
#include "core/batch.h"
#include "core/fields.h"
#include "core/philox.h"
#include "cuda/ranks/ranks.h"
#include "models/model.h"
#include "models/training/optimizer.h"
#include "models/training/step_graph.h"

namespace ricci {

// Adds the gradient of the step's loss, the weighted sum of the micro-batches' losses, to every Parameter::grad (f32 if the parameters have
// f32 masters), and returns the loss, an f64 scalar.
Tensor forward_backward(const Model& model, const std::vector<Batch>& micro_batches, const std::vector<Tensor>& weights, RandomState random,
    const TapeOptions& options = {});

// The weight of each micro-batch, an f64 scalar on the device: its share of the step's scored tokens on all ranks. The weighted losses then
// add up to the mean over all tokens.
std::vector<Tensor> weigh(const Model& model, const std::vector<Batch>& micro_batches, Device device, Ranks& ranks = Ranks::alone());

// The micro-batches of a step that this rank computes.
Range share_of(int64_t micro_batches, const Ranks& ranks);

struct StepResult {
  // Mean nats per scored target of all micro-batches, plus further losses of the model, such as topdown's bag losses. It is 0 if no target
  // is scored.
  double loss;
  double gradient_norm;  // before clipping
  // On steps with norms, two values per parameter group (group_of): grad_norm.GROUP before clipping and weight_norm.GROUP after the update.
  // A group without a gradient has only weight_norm.GROUP.
  NamedNumbers norms = {};
};

struct TrainStepOptions {
  uint64_t seed = 0;                // for dropout
  double clip = 0;                  // largest norm of the gradient; 0 disables clipping
  bool cuda_graph = false;          // for a device with graphs
  int64_t first_micro_batch = 0;    // share_of().lo: the index, within the step, of run()'s first micro-batch
  Dtype reduce_dtype = Dtype::f32;  // for sum_gradients
  int64_t norms_every = 0;          // steps between StepResult::norms, or 0 for never
  bool has_norms(int64_t step) const { return norms_every > 0 && (step + 1) % norms_every == 0; }  // steps are counted from 0
};

// Dropout in a sequence depends only on the seed, the step and the index of the sequence in the step. So every division of a step into
// equal micro-batches gives the same gradient up to rounding, and a bitwise identical gradient with batch_invariant. A bag loss is the mean
// over the cells of its micro-batch, so with topdown's bag_weights this holds only for full windows with all targets scored.
class TrainStep {
 public:
  // With multiple ranks, each rank makes a TrainStep, and all ranks call run() or explain_nonfinite() together. Error: a graph is used with
  // multiple ranks or with norms.
  TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainStepOptions& options, Ranks& ranks = Ranks::alone());

  // Steps are counted from 0. The micro-batches can be on any device. If the loss or the norm is not finite, nothing is updated. Every rank
  // returns the same result. Errors: a parameter still has a gradient; as for StepGraph::run.
  StepResult run(const std::vector<Batch>& micro_batches, int64_t step, double learning_rate) {
    return *run_unless(nullptr, micro_batches, step, learning_rate);
  }
  // Returns nullopt, and changes nothing, if stop() returns true before the update. With a graph or multiple ranks, stop() is never called.
  std::optional<StepResult> run_unless(bool (*stop)(), const std::vector<Batch>& micro_batches, int64_t step, double learning_rate);

  // Call it if a result was not finite. It runs the step again, checks every op's result, and throws an error that names the op of the
  // first NaN or infinity. Messages count steps from 1.
  [[noreturn]] void explain_nonfinite(const std::vector<Batch>& micro_batches, int64_t step, double loss) const;

  int64_t graph_bytes() const { return graph_ ? graph_->bytes() : 0; }  // StepGraph::bytes

 private:
  RandomState random_state_at(int64_t step) const;  // for the first micro-batch

  const Model& model_;
  std::vector<Parameter*> parameters_;
  Device device_;
  TrainStepOptions options_;
  Optimizer& optimizer_;
  Ranks& ranks_;
  std::unique_ptr<StepGraph> graph_ = {};  // null without a graph
};

}  // namespace ricci
