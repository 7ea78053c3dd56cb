// An optimizer for a list of parameters. It updates all parameters together: hundreds of small kernels would take longer to launch than to
// run.
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
#include "models/layers/type_list.h"
#include "ops/optimizers/adamw.h"
#include "ops/optimizers/muon.h"
#include "ops/optimizers/sgd.h"

namespace ricci {

// The list of optimizers. To add one, write its options, rates and update as an op (ops/optimizers/sgd.h and sgd.cu are the shortest), and
// append its name here. Its keys, its names in checkpoints and its memory in plans follow automatically.
using Optimizers = TypeList<AdamW, Adam, Sgd, Muon>;

enum class OptimizerKind : uint8_t {};  // an index into the list
constexpr auto choices(OptimizerKind) {
  return Optimizers::map([]<class O>() { return O::kName; });
}
template <class O> inline constexpr OptimizerKind optimizer_kind = static_cast<OptimizerKind>(Optimizers::number_of<O>());

// Weight decay acts on matrices and, with decay_embeddings, also on embedding tables. Biases and norm gains never decay.
struct OptimizerConfig {
  OptimizerKind kind = optimizer_kind<AdamW>;
  Optimizers::Configs options = {};
  double weight_decay = 0.1;
  bool decay_embeddings = true;  // token and position tables, and so the output map of a tied head
  // Factors for parameters, by patterns of their paths (parameter_groups.h). The last matching pattern is used.
  NamedNumbers lr_of = {}, decay_of = {};

  template <class O> O& settings() { return options.settings<O>(); }
  template <class O> const O& settings() const { return options.settings<O>(); }
  // Example: OptimizerConfig::with(Sgd{.momentum = 0})
  template <class O> static OptimizerConfig with(const O& chosen, double weight_decay = 0.1) {
    OptimizerConfig config{.kind = optimizer_kind<O>, .weight_decay = weight_decay};
    config.settings<O>() = chosen;
    return config;
  }
};

inline void visit_fields(OptimizerConfig& c, const Fields& field) {
  field("optimizer", c.kind, "adamw and muon decay weights directly; adam and sgd add the decay to the gradient").decides();
  Optimizers::each(
      [&]<class O>() { visit_fields(c.settings<O>(), field.when(c.kind == optimizer_kind<O>, std::string("optimizer: ") + O::kName)); });
  field("weight_decay", c.weight_decay, "decay of matrices and embeddings; biases and norm gains never decay").at_least(0);
  field("decay_embeddings", c.decay_embeddings, "weight decay also acts on token and position tables");
  field("lr_of", c.lr_of,
      "learning rate factors by path, with patterns as for freeze, such as {tok: 0.1, \"blocks.*.mixer\": 0.5}; the last pattern that "
      "matches a parameter is used")
      .at_least(0);
  field("decay_of", c.decay_of, "weight_decay factors by path, as for lr_of").at_least(0);
}

class Optimizer final : public MemoryHolder {
 public:
  // The parameters must outlive the optimizer. Moments start at zero, on the device of the values. A bf16 parameter without a master gets
  // one with its current value; Model::place_for_training keeps the unrounded values instead. Error: a pattern matches no parameter.
  Optimizer(std::vector<Parameter*> parameters, const OptimizerConfig& config);

  // Updates the parameters that have a gradient, and clears the gradients. Errors: no parameter has a gradient; a parameter was moved,
  // converted or reshaped after the optimizer was constructed.
  void step(double learning_rate);

  // A step in two halves. begin_step() increments the step count and writes the rates to device memory; update() reads them there, so it
  // can be recorded and launched again (cuda/device/graph.h). update() scales the gradients to a norm of at most `clip` (0: no scaling). If
  // the norm or the loss is not finite, it only clears the gradients. It returns the norm before scaling; the loss and the norm are f64
  // scalars on the device.
  void begin_step(double learning_rate);
  Tensor update(double clip, const Tensor& loss);

  // The number of steps since the state was zero. It is part of the state: Adam's bias correction depends on it.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps);  // call it after loading a state; error: the value is negative

  // Calls f(name, tensor) for every tensor of the state, in the order of the parameters. The name is the parameter's path followed by .m,
  // .v or .momentum, such as blocks.0.fc.weight.m. f can overwrite the elements. Error: a parameter has no path.
  void each_state(const std::function<void(const std::string& name, const Tensor& tensor)>& f) const;

  void each_tensor(const Visit& visit) const override;

 private:
  template <class F> void with_options(const F& f) const {  // calls f(options of the chosen optimizer)
    Optimizers::call_for(config_.kind, [&]<class O>() { f(config_.settings<O>()); });
  }
  Device device() const { return parameters_.empty() ? Device::cpu : parameters_[0]->value.device(); }
  std::vector<int64_t> matrices_in(const Parameter& p) const;
  void apply(const Tensor& gradient_scale);

  std::vector<Parameter*> parameters_;
  OptimizerConfig config_;
  struct State {
    Tensor m = {}, v = {};                 // means of the gradient (or momentum) and of its square; can be empty
    std::vector<int64_t> row_blocks = {};  // see matrices_in
    double lr_factor = 1, decay_factor = 1;
  };
  std::vector<State> states_;  // one per parameter
  Tensor rates_;               // for the current step
  int64_t steps_ = 0;
};

}  // namespace ricci
