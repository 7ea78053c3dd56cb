#include "models/training/optimizer.h"

#include <utility>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/optimizers/adamw.h"
#include "ops/optimizers/gradient_norm.h"
#include "ops/optimizers/sgd.h"

namespace ricci {
namespace {

using Kind = OptimizerConfig::Kind;

constexpr const char* kV = ".v";

bool decays(const Parameter& p, const OptimizerConfig& config) {
  return p.role == Role::matrix || (p.role == Role::table && config.decay_embeddings);
}

Sgd sgd_options(const OptimizerConfig& config) { return {config.momentum, config.nesterov}; }

AdamW adamw_options(const OptimizerConfig& config) { return {config.beta1, config.beta2, config.eps, config.kind == Kind::adamw}; }

void check(const OptimizerConfig& config) {
  if (config.kind == Kind::sgd && config.nesterov && config.momentum == 0) fail("optimizer: nesterov needs a momentum above 0");
}

// Read and written by an update.
int64_t bytes_moved(const std::vector<OptimizerTensor>& tensors) {
  int64_t bytes = 0;
  for (const OptimizerTensor& t : tensors) {
    if (!t.grad) continue;
    for (const Tensor* part : {&t.value, &t.master, &t.m, &t.v, &t.grad})
      if (*part) bytes += (part == &t.grad ? 1 : 2) * part->bytes();
  }
  return bytes;
}

}  // namespace

Optimizer::Optimizer(std::vector<Parameter*> parameters, const OptimizerConfig& config)
    : parameters_(std::move(parameters)), config_(config) {
  check(config);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& p = *parameters_[i];
    if (p.value.dtype() == Dtype::bf16 && !p.master) p.master = convert(p.value, Dtype::f32);
    add_state({i, {0, p.value.size()}}, p.value.shape());
  }
}

Optimizer::Optimizer(std::vector<Parameter*> parameters, const OptimizerConfig& config, const std::vector<ParameterBlock>& blocks)
    : parameters_(std::move(parameters)), config_(config), in_blocks_(true) {
  check(config);
  for (const ParameterBlock& block : blocks) {
    const Parameter& p = *parameters_[block.parameter];
    add_state(block, {block.elements.hi - block.elements.lo});
    if (p.value.dtype() != Dtype::bf16) continue;
    const Tensor part = part_of(p.unrounded(), block.elements);
    copy(states_.back().master = like(part, part.shape(), Dtype::f32), convert(part, Dtype::f32));
  }
  for (Parameter* p : parameters_) {
    p->master_in_blocks = p->value.dtype() == Dtype::bf16;
    p->master = {};
  }
}

// With moments of this shape, which are zero.
void Optimizer::add_state(const ParameterBlock& block, const Shape& shape) {
  const Tensor& value = parameters_[block.parameter]->value;
  const bool adam = config_.kind != Kind::sgd;
  const auto moment = [&] { return zeros(shape, sums_of(value.dtype()), value.device()); };
  State& state = states_.emplace_back(State{block});
  if (adam || config_.momentum != 0) state.m = moment();
  if (adam) state.v = moment();
}

std::vector<Tensor> Optimizer::gradients() const {
  std::vector<Tensor> all;
  for (const Parameter* p : parameters_) all.push_back(p->grad);
  return all;
}

double Optimizer::gradient_norm() const { return item(ricci::gradient_norm(gradients())); }

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  const auto [lr, step_size, correction2] =
      config_.kind == Kind::sgd ? rates_of(sgd_options(config_), learning_rate) : rates_of(adamw_options(config_), learning_rate, steps_);
  if (!rates_) rates_ = Tensor({3}, Dtype::f64, device());
  fill(rates_, {lr, step_size, correction2});
}

Tensor Optimizer::update(double clip, const Tensor& loss) {
  const Tensor norm = ricci::gradient_norm(gradients());
  apply(taken_gradients(), clip_factor(norm, clip, loss));
  return norm;
}

void Optimizer::update_blocks(const std::vector<Tensor>& gradients, const Tensor& gradient_scale) { apply(gradients, gradient_scale); }

void Optimizer::step(double learning_rate, double gradient_scale) {
  begin_step(learning_rate);
  const Tensor scale({}, Dtype::f64, device());
  fill(scale, gradient_scale);
  apply(taken_gradients(), scale);
}

std::vector<Tensor> Optimizer::taken_gradients() {
  std::vector<Tensor> all;
  for (Parameter* p : parameters_) all.push_back(std::exchange(p->grad, {}).detached());
  return all;
}

// One gradient for each state.
void Optimizer::apply(const std::vector<Tensor>& gradients, const Tensor& gradient_scale) {
  if (gradients.size() != states_.size()) fail("optimizer: {} gradients for {} blocks", {gradients.size(), states_.size()});
  std::vector<OptimizerTensor> tensors;
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    const Parameter& p = *parameters_[state.block.parameter];
    tensors.push_back({.value = in_blocks_ ? part_of(p.value, state.block.elements) : p.value,
        .grad = gradients[i],
        .m = state.m,
        .v = state.v,
        .master = in_blocks_ ? state.master : p.master,
        .weight_decay = decays(p, config_) ? config_.weight_decay : 0,
        .name = p.path});
  }
  const StepNumbers numbers{rates_, gradient_scale};
  if (config_.kind == Kind::sgd) sgd_update(tensors, sgd_options(config_), numbers);
  else adamw_update(tensors, adamw_options(config_), numbers);
  trace::end("optimizer", "", device(), trace::enabled ? bytes_moved(tensors) : 0);
}

void Optimizer::set_steps(int64_t steps) {
  if (steps < 0) fail("optimizer: {} steps, expected 0 or more", {steps});
  steps_ = steps;
}

std::string Optimizer::path_of(size_t parameter) const {
  const Parameter& p = *parameters_[parameter];
  if (p.path.empty()) fail("optimizer: parameter {} of shape {} has no path", {parameter, show(p.value.shape())});
  return p.path;
}

void Optimizer::each_state(const std::function<void(const std::string&, Tensor&)>& f) {
  if (in_blocks_) fail("optimizer: this rank has blocks of its state, and no whole tensor");
  for (State& state : states_) {
    const std::string path = path_of(state.block.parameter);
    if (state.m) f(path + name_of_m(), state.m);
    if (state.v) f(path + kV, state.v);
  }
}

void Optimizer::each_state_block(const VisitState& f) const {
  const bool adam = config_.kind != Kind::sgd;
  auto state = states_.begin();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    std::vector<StateBlock> m, v;
    for (; state != states_.end() && state->block.parameter == i; ++state) {
      m.push_back({state->block.elements, state->m});
      v.push_back({state->block.elements, state->v});
    }
    if (adam || config_.momentum != 0) f(path_of(i) + name_of_m(), parameters_[i]->value.shape(), m);
    if (adam) f(path_of(i) + kV, parameters_[i]->value.shape(), v);
  }
}

std::vector<StateBlock> Optimizer::master_blocks(const Parameter& p) const {
  std::vector<StateBlock> all;
  for (const State& state : states_) {
    if (parameters_[state.block.parameter] != &p) continue;
    const Tensor& master = in_blocks_ ? state.master : p.master;
    if (master) all.push_back({state.block.elements, master});
  }
  return all;
}

void Optimizer::each_held(const Visit& visit) const {
  for (const Parameter* p : parameters_) {
    visit(p->value, HeldFor::parameters);
    visit(p->grad, HeldFor::gradients);
    visit(p->master, HeldFor::optimizer_state);
  }
  for (const State& state : states_)
    for (const Tensor* t : {&state.m, &state.v, &state.master}) visit(*t, HeldFor::optimizer_state);
}

}  // namespace ricci
