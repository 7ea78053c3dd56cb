// The optimizers, as one value over the parameters of a model.
//   Optimizer optimizer(model.parameters(), config);
//   optimizer.step(lr);                  reads and clears every Parameter::grad
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/arg.h"
#include "autograd/parameter.h"
#include "core/choice.h"
#include "core/fields.h"
#include "core/memory/memory.h"

namespace ricci {

// Weight decay acts on matrices, and with decay_embeddings on tables. Biases and the gains of norms never decay.
struct OptimizerConfig {
  enum class Kind : uint8_t {
    adamw,  // Loshchilov and Hutter 2019: weight decay apart from the gradient
    adam,   // Kingma and Ba 2015: weight decay as a part of the gradient, which PyTorch's Adam means by it
    sgd,    // with momentum, as PyTorch's SGD without dampening
  } kind = Kind::adamw;
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8;  // adamw, adam
  double momentum = 0.9;                         // sgd
  bool nesterov = false;                         // sgd
  double weight_decay = 0.1;
  bool decay_embeddings = true;  // tokens and positions; with a tied head the output map too
};
constexpr auto choices(OptimizerConfig::Kind) { return std::array{"adamw", "adam", "sgd"}; }

inline void visit_fields(OptimizerConfig& c, const Fields& field) {
  const bool sgd = c.kind == OptimizerConfig::Kind::sgd;
  field("optimizer", c.kind, "adamw decays weights separately from the gradient, adam and sgd as a part of it").decides();
  const Fields of_adam = field.when(!sgd, "optimizer: adamw, adam"), of_sgd = field.when(sgd, "optimizer: sgd");
  of_adam("beta1", c.beta1, "decay of the mean gradient").below_one();
  of_adam("beta2", c.beta2, "decay of the mean squared gradient").below_one();
  of_adam("eps", c.eps, "added to the root of the mean squared gradient").positive();
  of_sgd("momentum", c.momentum, "decay of the sum of gradients; 0: none").below_one();
  of_sgd("nesterov", c.nesterov, "Nesterov's momentum");
  field("weight_decay", c.weight_decay, "of matrices and embeddings; biases and the gains of norms never decay").at_least(0);
  field("decay_embeddings", c.decay_embeddings, "the tables of tokens and positions decay too");
}

class Optimizer final : public MemoryHolder {
 public:
  // The parameters must outlive the optimizer, which updates whatever values and masters they have at a step. Moments start at
  // zero, on the device of the values. A bf16 value without a master gets one, which starts as the value is now;
  // Model::place_for_training keeps the values before rounding. Errors: nesterov without momentum.
  Optimizer(std::vector<Parameter*> parameters, const OptimizerConfig& config);

  // One update by the gradients, which are then cleared. Parameters that no gradient reached stay as they are. Error: a parameter that was
  // moved, converted or reshaped since the optimizer was made.
  void step(double learning_rate);

  // The same in two halves, because a device need not be waited for. begin_step() counts the step and writes its rates to device memory;
  // update() reads them there, and can therefore be recorded (cuda/device/graph.h). It scales the gradients to a norm of at most `clip`
  // (if not 0). If their norm or the loss is not finite, it only clears them. Returns the norm before; loss and norm are f64 scalars on
  // the device.
  void begin_step(double learning_rate);
  Tensor update(double clip, const Tensor& loss);

  // Steps taken since the state was zero; the bias correction of Adam depends on it.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps);  // for a state that was loaded; error: a negative number

  // f(name, tensor) for every tensor of the state, in the order of the parameters: the path of the parameter with .m and .v (adamw, adam)
  // or .momentum (sgd with momentum), as in blocks.0.fc.weight.m. Its elements can be overwritten. Values and masters belong to the
  // parameters. Error: a parameter without a path (Model::place gives them).
  void each_state(const std::function<void(const std::string& name, const Tensor& tensor)>& f) const;

  void each_held(const Visit& visit) const override;

 private:
  Device device() const { return parameters_.empty() ? Device::cpu : parameters_[0]->value.device(); }
  void apply(const Tensor& gradient_scale);

  std::vector<Parameter*> parameters_;
  OptimizerConfig config_;
  struct State {
    Tensor m = {}, v = {};  // mean of the gradient (momentum), mean of its square; each empty if the rule has none
  };
  std::vector<State> states_;  // one for each parameter
  Tensor rates_;               // for the step that begin_step() began
  int64_t steps_ = 0;
};

}  // namespace ricci
