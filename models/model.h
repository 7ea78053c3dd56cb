// A model of any family, as one value. Only here is the family chosen at run time, so programs are not compiled once for every family and
// mixer.
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
  // Builds the family of the config with f32 parameters on the CPU that have paths but no values yet. Error: the config is impossible.
  explicit Model(const ModelConfig& config);
  Model(const ModelConfig& config, uint64_t seed) : Model(config) { init(seed); }
  Model(Model&&) noexcept;
  ~Model() override;

  const ModelConfig& config() const { return config_; }

  // [b c v] for a language model: every position.
  Tensor logits(const Batch& batch) const;
  // Mean nats per target other than -1, an f64 scalar. Targets of padding are scored unless they are -1. Training minimizes `loss`:
  // text_loss and any further losses with a weight in the config.
  Tensor loss(const Batch& batch) const;
  Tensor text_loss(const Batch& batch) const;
  // The number of scored targets. Some families omit positions.
  int64_t counted(const Batch& batch) const;

  // Decoding. advance reads the next positions ids_bc of every sequence and returns the logits after the last one [b v];
  // step reads one position, ids_b -> logits_bv.
  // Errors: the model is not causal; the positions exceed its context.
  std::unique_ptr<DecodingState> init_state(int64_t batch) const;
  Tensor advance(const Tensor& ids_bc, DecodingState& state) const;
  Tensor step(const Tensor& ids_b, DecodingState& state) const { return advance(ids_b.reshaped({ids_b.size(), 1}), state); }

  // For models/inspection: the layers that exchange information between positions, the input of the last map, and the token embeddings
  // without positions.
  std::vector<MixingLayer> layers() const;
  Tensor hidden(const Batch& batch) const;
  Tensor token_embeddings(const Tensor& ids_bc) const;

  void init(uint64_t seed);  // samples the weights; call it before place()
  // Loads the value of every parameter from source(path, shape). Before place() the values keep their dtype; after it they are converted
  // and written into the parameters and masters.
  using Source = std::function<Tensor(const std::string& path, const Shape& shape)>;
  void load(const Source& source);
  // Converts and moves every parameter. For bf16 training, Parameter::master keeps the f32 values before rounding. bf16 would lose small
  // updates.
  void place(Dtype dtype, Device device);
  void place_for_training(Dtype dtype, Device device);
  // If on, the tape keeps only the input of each block and backward computes the block again, with the same bits, less memory and about a
  // third more time.
  void recompute_blocks(bool on);

  void each_parameter(const std::function<void(const std::string& path, Parameter&)>& f);
  std::vector<Parameter*> parameters();
  std::vector<Parameter*> trained_parameters();  // without the frozen ones
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
