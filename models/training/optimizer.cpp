// Handles moments, clipping and role-dependent weight decay.
#include "models/training/optimizer.h"

#include <algorithm>
#include <utility>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/training/parameter_groups.h"
#include "ops/optimizers/optimizers.h"

namespace ricci {
namespace {

bool decays(const Parameter& p, const OptimizerConfig& config) {
  return p.role == Role::matrix || (p.role == Role::table && config.decay_embeddings);
}

}  // namespace

Optimizer::Optimizer(std::vector<Parameter*> parameters, const OptimizerConfig& config)
    : parameters_(std::move(parameters)), config_(config) {
  Moments moments;
  with_options([&](const auto& options) { moments = options.moments(); });
  for (Parameter* p : parameters_) {
    if (p->value.dtype() == Dtype::bf16 && !p->master) p->master = convert(p->value, Dtype::f32);
    State& state = states_.emplace_back();
    state.row_blocks = matrices_in(*p);
    if (moments.m) state.m = zeros_like(p->unrounded());
    if (moments.v && state.row_blocks.empty()) state.v = zeros_like(p->unrounded());
  }
  for (const auto& [pattern, factor] : config_.lr_of)
    each_match("lr_of", pattern, "trained parameter", parameters_, [&, lr = factor](size_t i) { states_[i].lr_factor = lr; });
  for (const auto& [pattern, factor] : config_.decay_of)
    each_match("decay_of", pattern, "trained parameter", parameters_, [&, decay = factor](size_t i) { states_[i].decay_factor = decay; });
}

// The row counts of the matrices that the optimizer updates as full matrices, as Muon does with the linear maps of blocks. Such a parameter
// has no v.
std::vector<int64_t> Optimizer::matrices_in(const Parameter& p) const {
  bool by_matrices = false;
  with_options([&](const auto& options) { by_matrices = options.kByMatrices; });
  const bool in_block = ("." + p.path).find(".blocks.") != std::string::npos;
  return by_matrices && in_block ? p.row_blocks : std::vector<int64_t>();
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  Rates rates{};
  with_options([&](const auto& options) { rates = rates_of(options, learning_rate, steps_); });
  if (!rates_) rates_ = Tensor({3}, Dtype::f64, device());
  fill(rates_, {rates.learning_rate, rates.step_size, rates.bias_correction2_sqrt});
}

Tensor Optimizer::update(double clip, const Tensor& loss) {
  std::vector<Tensor> gradients;
  for (const Parameter* p : parameters_) gradients.push_back(p->grad);
  const Tensor norm = gradient_norm(gradients);
  apply(clip_factor(norm, clip, loss));
  return norm;
}

void Optimizer::step(double learning_rate) {
  if (std::none_of(parameters_.begin(), parameters_.end(), [](const Parameter* p) { return bool(p->grad); }))
    fail("optimizer: no parameter has a gradient; call Tape::backward before step");
  begin_step(learning_rate);
  const Tensor one({}, Dtype::f64, device());
  fill(one, 1.0);
  apply(one);
}

// Updates the parameters with their gradients times gradient_scale, and clears the gradients.
void Optimizer::apply(const Tensor& gradient_scale) {
  std::vector<OptimizerTensor> tensors;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = *parameters_[i];
    tensors.push_back({.value = p.value,
        .grad = std::exchange(p.grad, {}).detached(),
        .m = states_[i].m,
        .v = states_[i].v,
        .master = p.master,
        .weight_decay = decays(p, config_) ? config_.weight_decay * states_[i].decay_factor : 0,
        .lr_factor = states_[i].lr_factor,
        .name = p.path,
        .row_blocks = states_[i].row_blocks});
  }
  with_options([&](const auto& options) { update_parameters(tensors, options, {rates_, gradient_scale}); });
}

void Optimizer::set_steps(int64_t steps) {
  if (steps < 0) fail("optimizer: the step count is {}, expected 0 or more", {steps});
  steps_ = steps;
}

void Optimizer::each_state(const std::function<void(const std::string&, const Tensor&)>& f) const {
  std::string first_moment;
  with_options([&](const auto& options) { first_moment = options.kFirstMoment; });
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = *parameters_[i];
    if (p.path.empty()) fail("optimizer: parameter {} of shape {} has no path", {i, show(p.value.shape())});
    if (states_[i].m) f(p.path + "." + first_moment, states_[i].m);
    if (states_[i].v) f(p.path + ".v", states_[i].v);
  }
}

void Optimizer::each_tensor(const Visit& visit) const {
  for (const Parameter* p : parameters_) {
    visit(p->value, HeldFor::parameters);
    visit(p->grad, HeldFor::gradients);
    visit(p->master, HeldFor::optimizer_state);
  }
  for (const State& state : states_)
    for (const Tensor* t : {&state.m, &state.v}) visit(*t, HeldFor::optimizer_state);
}

}  // namespace ricci
