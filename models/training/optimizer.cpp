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

using Config = OptimizerConfig;
using Kind = Config::Kind;
using Tensors = std::vector<OptimizerTensor>;

// ---- The optimizers. To add one:
//   1. its update of all tensors, as a file of ops/optimizers (sgd.cu is the shortest)
//   2. its name in OptimizerConfig::Kind and choices(), its options in OptimizerConfig and visit_fields()
//   3. a row of kRules
struct Rule {
  Kind name;
  bool (*has_m)(const Config& config);  // the first moment: a mean of the gradient, or momentum
  bool has_v;                           // the second moment: a mean of the gradient's square
  const char* name_of_m;                // in a checkpoint, after the name of the parameter
  Rates (*rates)(const Config& config, double learning_rate, int64_t step);
  void (*update)(const Tensors& tensors, const Config& config, const StepNumbers& now);
};

AdamW adam_options(const Config& c) { return {c.beta1, c.beta2, c.eps, c.kind == Kind::adamw}; }
Rates adam_rates(const Config& c, double learning_rate, int64_t step) { return rates_of(adam_options(c), learning_rate, step); }
void update_by_adam(const Tensors& tensors, const Config& c, const StepNumbers& now) { adamw_update(tensors, adam_options(c), now); }
bool always(const Config&) { return true; }

Sgd sgd_options(const Config& c) { return {c.momentum, c.nesterov}; }
Rates sgd_rates(const Config& c, double learning_rate, int64_t) { return rates_of(sgd_options(c), learning_rate); }
void update_by_sgd(const Tensors& tensors, const Config& c, const StepNumbers& now) { sgd_update(tensors, sgd_options(c), now); }
bool with_momentum(const Config& c) {
  if (c.nesterov && c.momentum == 0) fail("optimizer: nesterov needs a momentum above 0");
  return c.momentum != 0;
}

constexpr Rule kRules[] = {
    {Kind::adamw, always, true, ".m", adam_rates, update_by_adam},
    {Kind::adam, always, true, ".m", adam_rates, update_by_adam},
    {Kind::sgd, with_momentum, false, ".momentum", sgd_rates, update_by_sgd},
};

const Rule& rule_of(const Config& config) {
  for (const Rule& rule : kRules)
    if (rule.name == config.kind) return rule;
  fail("optimizer: no row of kRules for kind {}", {static_cast<int>(config.kind)});
}

bool decays(const Parameter& p, const Config& config) {
  return p.role == Role::matrix || (p.role == Role::table && config.decay_embeddings);
}

// Read and written by an update.
int64_t bytes_moved(const Tensors& tensors) {
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
  const Rule& rule = rule_of(config);
  const bool has_m = rule.has_m(config);
  for (Parameter* p : parameters_) {
    if (p->value.dtype() == Dtype::bf16 && !p->master) p->master = convert(p->value, Dtype::f32);
    State& state = states_.emplace_back();
    if (has_m) state.m = zeros_like(p->unrounded());
    if (rule.has_v) state.v = zeros_like(p->unrounded());
  }
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  const auto [lr, step_size, correction2] = rule_of(config_).rates(config_, learning_rate, steps_);
  if (!rates_) rates_ = Tensor({3}, Dtype::f64, device());
  fill(rates_, {lr, step_size, correction2});
}

Tensor Optimizer::update(double clip, const Tensor& loss) {
  std::vector<Tensor> gradients;
  for (const Parameter* p : parameters_) gradients.push_back(p->grad);
  const Tensor norm = gradient_norm(gradients);
  apply(clip_factor(norm, clip, loss));
  return norm;
}

void Optimizer::step(double learning_rate) {
  begin_step(learning_rate);
  const Tensor one({}, Dtype::f64, device());
  fill(one, 1.0);
  apply(one);
}

// Updates the parameters by their gradients, each multiplied by gradient_scale, and clears the gradients.
void Optimizer::apply(const Tensor& gradient_scale) {
  Tensors tensors;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = *parameters_[i];
    tensors.push_back({.value = p.value,
        .grad = std::exchange(p.grad, {}).detached(),
        .m = states_[i].m,
        .v = states_[i].v,
        .master = p.master,
        .weight_decay = decays(p, config_) ? config_.weight_decay : 0,
        .name = p.path});
  }
  rule_of(config_).update(tensors, config_, {rates_, gradient_scale});
  trace::end("optimizer", "", device(), trace::enabled ? bytes_moved(tensors) : 0);
}

void Optimizer::set_steps(int64_t steps) {
  if (steps < 0) fail("optimizer: {} steps, expected 0 or more", {steps});
  steps_ = steps;
}

void Optimizer::each_state(const std::function<void(const std::string&, const Tensor&)>& f) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = *parameters_[i];
    if (p.path.empty()) fail("optimizer: parameter {} of shape {} has no path", {i, show(p.value.shape())});
    if (states_[i].m) f(p.path + rule_of(config_).name_of_m, states_[i].m);
    if (states_[i].v) f(p.path + ".v", states_[i].v);
  }
}

void Optimizer::each_held(const Visit& visit) const {
  for (const Parameter* p : parameters_) {
    visit(p->value, HeldFor::parameters);
    visit(p->grad, HeldFor::gradients);
    visit(p->master, HeldFor::optimizer_state);
  }
  for (const State& state : states_)
    for (const Tensor* t : {&state.m, &state.v}) visit(*t, HeldFor::optimizer_state);
}

}  // namespace ricci
