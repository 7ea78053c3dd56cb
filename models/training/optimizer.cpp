#include "models/training/optimizer.h"

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

bool decays(const Parameter& p, const OptimizerConfig& config) {
  return p.role == Role::matrix || (p.role == Role::table && config.decay_embeddings);
}

Sgd sgd_options(const OptimizerConfig& config) { return {config.momentum, config.nesterov}; }

AdamW adamw_options(const OptimizerConfig& config) { return {config.beta1, config.beta2, config.eps, config.kind == Kind::adamw}; }

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
  if (config.kind == Kind::sgd && config.nesterov && config.momentum == 0) fail("optimizer: nesterov needs a momentum above 0");
  const bool adam = config.kind != Kind::sgd;
  for (Parameter* p : parameters_) {
    if (p->value.dtype() == Dtype::bf16 && !p->master) p->master = convert(p->value, Dtype::f32);
    const auto moment = [&] { return zeros(p->value.shape(), sums_of(p->value.dtype()), p->value.device()); };
    Moments& moments = moments_.emplace_back();
    if (adam || config.momentum != 0) moments.m = moment();
    if (adam) moments.v = moment();
  }
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
  apply(clip_factor(norm, clip, loss));
  return norm;
}

void Optimizer::step(double learning_rate, double gradient_scale) {
  begin_step(learning_rate);
  const Tensor scale({}, Dtype::f64, device());
  fill(scale, gradient_scale);
  apply(scale);
}

void Optimizer::apply(const Tensor& gradient_scale) {
  std::vector<OptimizerTensor> tensors;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& p = *parameters_[i];
    tensors.push_back({.value = p.value,
        .grad = p.grad.detached(),
        .m = moments_[i].m,
        .v = moments_[i].v,
        .master = p.master,
        .weight_decay = decays(p, config_) ? config_.weight_decay : 0,
        .name = p.path});
    p.grad = {};
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

void Optimizer::each_state(const std::function<void(const std::string&, Tensor&)>& f) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& path = parameters_[i]->path;
    if (path.empty()) fail("optimizer: parameter {} of shape {} has no path", {i, show(parameters_[i]->value.shape())});
    Moments& t = moments_[i];
    if (t.m) f(path + (config_.kind == Kind::sgd ? ".momentum" : ".m"), t.m);
    if (t.v) f(path + ".v", t.v);
  }
}

void Optimizer::each_held(const Visit& visit) const {
  for (const Parameter* p : parameters_) {
    visit(p->value, HeldFor::parameters);
    visit(p->grad, HeldFor::gradients);
    visit(p->master, HeldFor::optimizer_state);
  }
  for (const auto& [m, v] : moments_) {
    visit(m, HeldFor::optimizer_state);
    visit(v, HeldFor::optimizer_state);
  }
}

}  // namespace ricci
