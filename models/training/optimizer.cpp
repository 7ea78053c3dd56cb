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

OptimizerTensor first_state(const Parameter& p, const OptimizerConfig& config) {
  const Tensor& value = p.value;
  const bool adam = config.kind != Kind::sgd;
  const auto moment = [&] { return zeros(value.shape(), value.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32, value.device()); };
  OptimizerTensor t{.value = value, .grad = {}, .m = {}, .v = {}, .master = {}};
  if (adam || config.momentum != 0) t.m = moment();
  if (adam) t.v = moment();
  t.master = p.master;
  if (decays(p, config)) t.weight_decay = config.weight_decay;
  return t;
}

Sgd sgd_options(const OptimizerConfig& config) { return {config.momentum, config.nesterov}; }

AdamW adamw_options(const OptimizerConfig& config) { return {config.beta1, config.beta2, config.eps, config.kind == Kind::adamw}; }

}  // namespace

Optimizer::Optimizer(std::vector<Parameter*> parameters, const OptimizerConfig& config) : parameters_(std::move(parameters)), config_(config) {
  if (config.kind == Kind::sgd && config.nesterov && config.momentum == 0) fail("optimizer: nesterov needs a momentum above 0");
  for (Parameter* p : parameters_) {
    if (p->value.dtype() == Dtype::bf16 && !p->master) p->master = convert(p->value, Dtype::f32);
    tensors_.push_back(first_state(*p, config));
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
  for (size_t i = 0; i < parameters_.size(); ++i) {
    tensors_[i].grad = parameters_[i]->grad.detached();
    parameters_[i]->grad = {};
  }
  const StepNumbers now{rates_, gradient_scale};
  if (config_.kind == Kind::sgd)
    sgd_update(tensors_, sgd_options(config_), now);
  else
    adamw_update(tensors_, adamw_options(config_), now);
  int64_t bytes = 0;  // read and written
  for (OptimizerTensor& t : tensors_) {
    if (trace::enabled && t.grad)
      for (const Tensor* part : {&t.value, &t.master, &t.m, &t.v, &t.grad})
        if (*part) bytes += (part == &t.grad ? 1 : 2) * part->bytes();
    t.grad = {};
  }
  trace::end("optimizer", "", device(), bytes);
}

void Optimizer::set_steps(int64_t steps) {
  if (steps < 0) fail("optimizer: {} steps, expected 0 or more", {steps});
  steps_ = steps;
}

void Optimizer::each_state(const std::function<void(const std::string&, Tensor&)>& f) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& path = parameters_[i]->path;
    if (path.empty()) fail("optimizer: parameter {} of shape {} has no path", {i, show(parameters_[i]->value.shape())});
    OptimizerTensor& t = tensors_[i];
    if (t.m) f(path + (config_.kind == Kind::sgd ? ".momentum" : ".m"), t.m);
    if (t.v) f(path + ".v", t.v);
  }
}

void Optimizer::each_held(const Visit& visit) const {
  for (const Parameter* p : parameters_) visit(p->value, HeldFor::parameters), visit(p->grad, HeldFor::gradients);
  for (const OptimizerTensor& t : tensors_) {
    visit(t.grad, HeldFor::gradients);
    for (const Tensor* state : {&t.m, &t.v, &t.master}) visit(*state, HeldFor::optimizer_state);
  }
}

}  // namespace ricci
