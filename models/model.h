// A language model of any family, as one value. This is the only place where the kind of model is decided at run time,
// so each family is compiled once.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/arg.h"
#include "core/memory/memory.h"
#include "models/config.h"
#include "models/inputs.h"

namespace ricci {

// What a model remembers of the tokens it has read, one sequence per row of the batch.
class DecodingState {
 public:
  virtual ~DecodingState() = default;
};

// What every family offers; Model holds one.
class AnyModel {
 public:
  virtual ~AnyModel() = default;
  virtual Tensor logits(const Inputs& inputs) const = 0;
  virtual Tensor loss(const Inputs& inputs) const = 0;
  virtual std::unique_ptr<DecodingState> init_state(int64_t batch) const = 0;
  virtual Tensor advance(const Tensor& ids_bc, DecodingState& state) const = 0;
  virtual void each_parameter(const std::function<void(const std::string& path, Parameter&)>& f) = 0;
  virtual void init(uint64_t seed) = 0;
  virtual void place(Dtype dtype, Device device) = 0;
  virtual void recompute_blocks(bool on) = 0;
};

class Model final : public MemoryHolder {
 public:
  // Builds the family of the config with uninitialised f32 parameters on the CPU. Errors: an impossible config, a family
  // or mixer that does not exist.
  explicit Model(const ModelConfig& config);

  const ModelConfig& config() const { return config_; }

  // Of a language model [b c v], every position.
  Tensor logits(const Inputs& inputs) const { return model_->logits(inputs); }
  // Mean nats per target other than -1, an f64 scalar: the path that training takes. Padding counts unless its targets are -1.
  Tensor loss(const Inputs& inputs) const { return model_->loss(inputs); }

  // Decoding: advance reads the next positions of every sequence, step a single one: ids_b -> logits_bv.
  std::unique_ptr<DecodingState> init_state(int64_t batch) const { return model_->init_state(batch); }
  Tensor advance(const Tensor& ids_bc, DecodingState& state) const { return model_->advance(ids_bc, state); }
  Tensor step(const Tensor& ids_b, DecodingState& state) const;

  void init(uint64_t seed) { model_->init(seed); }  // draws the weights; before place
  // Converts and moves every parameter. For training, the f32 values as they were before rounding to bf16 stay beside
  // them as Parameter::master.
  void place(Dtype dtype, Device device);
  void place_for_training(Dtype dtype, Device device);
  // From now on the tape keeps only what goes into each block, and backward computes the block again: the same bits, less
  // memory, about a third more time.
  void recompute_blocks(bool on) { model_->recompute_blocks(on); }
  void each_parameter(const std::function<void(const std::string& path, Parameter&)>& f) { model_->each_parameter(f); }
  std::vector<Parameter*> parameters();
  int64_t parameter_count();
  void each_held(const Visit& visit) const override;

 private:
  ModelConfig config_;
  std::unique_ptr<AnyModel> model_;
};

// Takes the value of every parameter from `load`, which is given each path and shape. For files see models/training/checkpoint.h.
using TensorSource = std::function<Tensor(const std::string& path, const Shape& shape)>;
void load_parameters(Model& model, const TensorSource& load);

}  // namespace ricci
