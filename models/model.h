// A model of any family, as one type. The family is chosen at run time only here, so programs are not compiled once per family and mixer.
#pragma once
#include <any>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/arg.h"
#include "core/memory/memory.h"
#include "models/config.h"
#include "models/layers/targets.h"

namespace ricci {

struct MixingLayer;

// A model's memory of earlier tokens, one sequence per row of the batch.
struct DecodingState {
  std::any state;  // Shell::State of the family's model
};

class Model final : public MemoryHolder {
 public:
  // Builds a model of the config's family. Its f32 parameters are on the CPU and have paths but no values yet. Error: the config is
  // impossible.
  explicit Model(const ModelConfig& config);
  Model(const ModelConfig& config, uint64_t seed) : Model(config) { init(seed); }
  Model(Model&&) noexcept;
  ~Model() override;

  const ModelConfig& config() const { return config_; }

  // Returns logits: [b c v] for every position; from a classifier [b k], from a coarse model [b m v].
  Tensor logits(const Batch& batch) const;
  // loss() and text_loss() return mean nats per target other than -1, as an f64 scalar. Targets of padding are scored unless they are -1.
  // Training minimizes `loss`: text_loss plus any further losses with a weight in the config.
  Tensor loss(const Batch& batch) const;
  Tensor text_loss(const Batch& batch) const;
  // The number of scored targets. Some families do not score every position.
  int64_t counted(const Batch& batch) const;

  // Decoding. `advance` reads the next ids of every sequence and returns the logits [b v] after the last one; `step` reads one id per
  // sequence, ids_b -> logits_bv. Errors: the model is not causal; the positions exceed its context.
  std::unique_ptr<DecodingState> init_state(int64_t batch) const;
  Tensor advance(const Tensor& ids_bc, DecodingState& state) const;
  Tensor step(const Tensor& ids_b, DecodingState& state) const { return advance(ids_b.reshaped({ids_b.size(), 1}), state); }

  // For models/inspection: the layers that exchange information between positions, the input of the last linear map, and the token
  // embeddings without position embeddings.
  std::vector<MixingLayer> layers() const;
  Tensor hidden(const Batch& batch) const;
  Tensor token_embeddings(const Tensor& ids_bc) const;

  void init(uint64_t seed);  // samples the weights; call it before place()
  // Loads the value of every parameter from source(path, shape). Before place(), the values keep their dtype; after it, they are converted
  // and written into the parameters and masters.
  using Source = std::function<Tensor(const std::string& path, const Shape& shape)>;
  void load(const Source& source);
  // Both functions convert and move every parameter. For bf16 training, Parameter::master keeps the unrounded f32 values: bf16 would lose
  // small updates.
  void place(Dtype dtype, Device device);
  void place_for_training(Dtype dtype, Device device);
  // If on, the tape keeps only the input of each block, and the backward pass computes the block again. The results are bitwise identical;
  // a step needs less memory and about a third more time.
  void recompute_blocks(bool on);

  void each_parameter(const std::function<void(const std::string& path, Parameter&)>& f);
  std::vector<Parameter*> parameters();
  std::vector<Parameter*> trained_parameters();  // all except the frozen ones
  int64_t parameter_count();
  void each_tensor(const Visit& visit) const override;

 private:
  struct Any;  // a model of any family
  template <class Made> struct Known;

  ModelConfig config_;
  std::unique_ptr<Any> any_;
  bool placed_ = false;
};

}  // namespace ricci
