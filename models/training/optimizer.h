// The optimizers, as one value over the parameters of a model.
//   Optimizer optimizer(model.parameters(), config);
//   optimizer.step(lr);                  reads and clears every Parameter::grad
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/arg.h"
#include "autograd/gradient_layout.h"
#include "core/choice.h"
#include "core/fields.h"
#include "core/memory/memory.h"
#include "ops/optimizers/optimizer_tensor.h"

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
  field("optimizer", c.kind, "adamw decays weights apart from the gradient, adam and sgd as a part of it").decides();
  const Fields of_adam = field.when(!sgd, "optimizer: adamw, adam"), of_sgd = field.when(sgd, "optimizer: sgd");
  of_adam("beta1", c.beta1, "decay of the mean gradient").below_one();
  of_adam("beta2", c.beta2, "decay of the mean squared gradient").below_one();
  of_adam("eps", c.eps, "added to the root of the mean squared gradient").positive();
  of_sgd("momentum", c.momentum, "decay of the sum of gradients; 0: none").below_one();
  of_sgd("nesterov", c.nesterov, "Nesterov's momentum");
  field("weight_decay", c.weight_decay, "of matrices and embeddings; biases and the gains of norms never decay").not_negative();
  field("decay_embeddings", c.decay_embeddings, "the tables of tokens and positions decay too");
}

// Elements [elements.lo, elements.hi) of a tensor, flat.
struct StateBlock {
  Range elements;
  Tensor values;
};

class Optimizer final : public MemoryHolder {
 public:
  // The parameters must outlive the optimizer, which updates whatever values and masters they have at a step. Moments start at
  // zero, on the device of the values. A bf16 value without a master gets one, which starts as the value is now;
  // Model::place_for_training keeps the values before rounding. Errors: nesterov without momentum.
  Optimizer(std::vector<Parameter*> parameters, const OptimizerConfig& config);

  // The same for one of several ranks, which updates these blocks alone (GradientLayout::blocks_of). Moments and masters are as large as
  // the blocks: Parameter::master becomes empty, master_in_blocks true.
  Optimizer(std::vector<Parameter*> parameters, const OptimizerConfig& config, const std::vector<ParameterBlock>& blocks);

  // The Euclidean norm of all gradients together; waits for the device.
  double gradient_norm() const;

  // One update with every gradient multiplied by gradient_scale; then the gradients are cleared. Parameters that no
  // gradient reached stay as they are. Error: a parameter that was moved, converted or reshaped since the optimizer was made.
  void step(double learning_rate, double gradient_scale = 1);

  // The same in two halves, for a device that is not waited for: begin_step() counts the step and writes its rates to
  // device memory; update() reads them there, so that it may be recorded (cuda/device/graph.h). It scales the
  // gradients to a norm of at most `clip` (if not 0), and does nothing but clear them where their norm or the loss is not
  // finite. Returns the norm before; loss and norm are f64 scalars on the device.
  void begin_step(double learning_rate);
  Tensor update(double clip, const Tensor& loss);
  // The same for blocks, with a gradient for each, scaled; an empty one: the block stays as it is.
  void update_blocks(const std::vector<Tensor>& gradients, const Tensor& gradient_scale);

  // Steps taken since the state was zero; the bias correction of Adam depends on it.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps);  // for a state that was loaded; error: a negative number

  // f(name, tensor) for every tensor of the state, in the order of the parameters: the path of the parameter with
  // .m and .v (adamw, adam), .momentum (sgd with momentum), as in blocks.0.fc.weight.m. Elements may be overwritten, or the
  // tensor replaced by another of the same shape, dtype and device. Values and masters are the parameters' own.
  // Errors: a parameter without a path (Model::place gives them); blocks.
  void each_state(const std::function<void(const std::string& name, Tensor& tensor)>& f);
  // The same on every rank: the shape of the whole tensor, and the blocks of it that this rank has, rising; all elements in one process.
  using VisitState = std::function<void(const std::string& name, const Shape& shape, const std::vector<StateBlock>& blocks)>;
  void each_state_block(const VisitState& f) const;
  // This rank's blocks of the master of a parameter; none where it has none, or is not trained.
  std::vector<StateBlock> master_blocks(const Parameter& p) const;

  void each_held(const Visit& visit) const override;

 private:
  std::vector<Tensor> gradients() const;
  std::vector<Tensor> taken_gradients();
  Device device() const { return parameters_.empty() ? Device::cpu : parameters_[0]->value.device(); }
  void apply(const std::vector<Tensor>& gradients, const Tensor& gradient_scale);

  std::vector<Parameter*> parameters_;
  OptimizerConfig config_;
  bool in_blocks_ = false;
  // A whole parameter, or a block of one.
  struct State {
    ParameterBlock block;
    Tensor m = {}, v = {};  // means of the gradient and of its square; empty where the rule has none
    Tensor master = {};     // the block's; a whole parameter has Parameter::master
  };
  void add_state(const ParameterBlock& block, const Shape& shape);
  std::string path_of(size_t parameter) const;
  std::string name_of_m() const { return config_.kind == OptimizerConfig::Kind::sgd ? ".momentum" : ".m"; }
  std::vector<State> states_;  // in the order of the parameters
  Tensor rates_;               // for the step that begin_step() began
  int64_t steps_ = 0;
};

}  // namespace ricci
