// A model of any family, as one value. Here alone is the kind of model decided at run time, so each family is compiled once.
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

struct Observation;
struct Forms;
struct Representation;
struct Mask;

// What a model remembers of the tokens it has read, one sequence per row of the batch.
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

  // Of a language model [b c v], every position.
  Tensor logits(const Inputs& inputs) const;
  // Mean nats per target other than -1, an f64 scalar. Padding counts unless its targets are -1. `loss` is what training minimises:
  // where the config gives weights to losses beside that of the text, it is the weighted sum; text_loss leaves them out.
  Tensor loss(const Inputs& inputs) const;
  Tensor text_loss(const Inputs& inputs) const;
  // How many tokens that is the mean of, given how many targets are not -1: fewer where the family leaves positions out.
  int64_t counted(const Inputs& inputs, int64_t targets) const;

  // Decoding. advance reads the next positions ids_bc of every sequence and returns the logits behind the last one [b v];
  // advance_all returns those of all of them [b c v]; step reads one position, ids_b -> logits_bv.
  // Errors: a model that is not causal, more positions than the context holds.
  std::unique_ptr<DecodingState> init_state(int64_t batch) const;
  Tensor advance(const Tensor& ids_bc, DecodingState& state) const;
  Tensor advance_all(const Tensor& ids_bc, DecodingState& state) const;
  Tensor step(const Tensor& ids_b, DecodingState& state) const { return advance(ids_b.reshaped({ids_b.size(), 1}), state); }

  // For people to look at (models/inspection/observation.h), one value per block: what the mixers do with a sequence, the matrices of
  // their scores, and the squared distances of tokens to the whole vocabulary under the metric of every head [n t v].
  // Error: a family of several scales.
  std::vector<Observation> observe(const Inputs& inputs) const;
  std::vector<Forms> forms() const;
  Tensor token_distances(int64_t block, const Tensor& ids_t) const;
  // What the blocks make of a text at each scale that has some, and which keys the queries see in a text of so many tokens
  // (models/inspection/representations.h, masks.h). Error, of masks: a mixer without attention.
  std::vector<Representation> representations(const Inputs& inputs) const;
  std::vector<Mask> masks(int64_t tokens) const;

  void init(uint64_t seed);  // draws the weights; before place
  // Takes the value of every parameter from `source`, which is given each path and shape. Before place(), the values keep the
  // dtype they come with; after it, they are converted and moved to where the parameters are, masters included.
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
  std::vector<Parameter*> trained_parameters();  // those that are not frozen
  int64_t parameter_count();
  void each_held(const Visit& visit) const override;

 private:
  struct AnyFamily;  // one value of whatever family, and the functions that ask which one it is

  ModelConfig config_;
  std::unique_ptr<AnyFamily> family_;
  bool placed_ = false;
};

}  // namespace ricci
