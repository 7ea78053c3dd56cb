// A model of any family, as one value. Here alone is the kind of model decided at run time, so each family is compiled once.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/arg.h"
#include "core/memory/memory.h"
#include "models/config.h"
#include "models/layers/inputs.h"

namespace ricci {

struct MixingLayer;

// The memory of the tokens that a model has read, one sequence per row of the batch.
class DecodingState {
 public:
  virtual ~DecodingState() = default;
};

class Model final : public MemoryHolder {
 public:
  // Builds the family of the config with uninitialised f32 parameters on the CPU, each with its path. Error: an impossible config.
  explicit Model(const ModelConfig& config);
  Model(const ModelConfig& config, uint64_t seed) : Model(config) { init(seed); }
  Model(Model&&) noexcept;
  ~Model() override;

  const ModelConfig& config() const { return config_; }

  // [b c v] for a language model: every position.
  Tensor logits(const Inputs& inputs) const;
  // Mean nats per target other than -1, an f64 scalar. Padding counts unless its targets are -1. `loss` is what training minimises:
  // where the config gives weights to further losses, it is the weighted sum; text_loss leaves them out.
  Tensor loss(const Inputs& inputs) const;
  Tensor text_loss(const Inputs& inputs) const;
  // Number of tokens the loss is the mean of, given how many targets are not -1; smaller if the family leaves positions out.
  int64_t counted(const Inputs& inputs, int64_t targets) const;

  // Decoding. advance reads the next positions ids_bc of every sequence and returns the logits after the last one [b v];
  // advance_all returns the logits of all of them [b c v]; step reads one position, ids_b -> logits_bv.
  // Errors: a model that is not causal, more positions than the context holds.
  std::unique_ptr<DecodingState> init_state(int64_t batch) const;
  Tensor advance(const Tensor& ids_bc, DecodingState& state) const;
  Tensor advance_all(const Tensor& ids_bc, DecodingState& state) const;
  Tensor step(const Tensor& ids_b, DecodingState& state) const { return advance(ids_b.reshaped({ids_b.size(), 1}), state); }

  // For people to look at (models/inspection): the layers in which positions exchange information, what the last map reads, and the
  // embeddings of tokens without positions.
  std::vector<MixingLayer> layers() const;
  Tensor hidden(const Inputs& inputs) const;
  Tensor token_embeddings(const Tensor& ids_bc) const;

  void init(uint64_t seed);  // draws the weights; before place
  // Takes the value of every parameter from `source`, which is given each path and shape. Before place(), the values keep the
  // dtype they come with; after it, they are converted and written into the parameters where these are, masters included.
  using Source = std::function<Tensor(const std::string& path, const Shape& shape)>;
  void load(const Source& source);
  // Converts and moves every parameter. For training, the f32 values as they were before rounding to bf16 stay beside
  // them as Parameter::master.
  void place(Dtype dtype, Device device);
  void place_for_training(Dtype dtype, Device device);
  // From now on the tape keeps only what goes into each block, and backward computes the block again: the same bits, less
  // memory, about a third more time.
  void recompute_blocks(bool on);

  void each_parameter(const std::function<void(const std::string& path, Parameter&)>& f);
  std::vector<Parameter*> parameters();
  std::vector<Parameter*> trained_parameters();  // all that are not frozen
  int64_t parameter_count();
  void each_held(const Visit& visit) const override;

 private:
  struct Any;  // a model of whatever family
  template <class Made> struct Known;

  ModelConfig config_;
  std::unique_ptr<Any> any_;
  bool placed_ = false;
};

}  // namespace ricci
