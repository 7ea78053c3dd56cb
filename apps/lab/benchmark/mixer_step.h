// A step of a mixer to be measured: forward and backward of a stack of blocks around it, or of the mixer alone, without embedding and
// vocabulary.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "models/mixers/mixers.h"

namespace ricci::apps {

struct StepSize {
  int64_t width = 256, layers = 2, heads = 4;
  std::optional<int64_t> feed_forward = {};  // the width if not given
  int64_t sequences = 1, positions = 128;
  bool alone = false;           // one mixer, whose input has a gradient too, as inside of a model
  Preset preset = Preset::msa;  // the blocks: gpt has norms in front, gelu and the norm that closes a stack; msa norms after and relu
  Dtype dtype = Dtype::f32;
  Device device = Device::cpu;
};

class MixerStep {
 public:
  // Draws weights, input and the gradient of the output, the same each time. Mixers without heads have none. Error: a size that the
  // mixer cannot have.
  MixerStep(MixerKind mixer, const StepSize& size);
  MixerStep(MixerStep&&) = default;
  MixerStep(const MixerStep&) = delete;

  void operator()();     // returns when the device is done
  void forward();        // the forward alone, without a tape
  int64_t kept_bytes();  // that a forward keeps for the backward, weights and the input left out
  const std::vector<Parameter*>& parameters() const { return parameters_; }

 private:
  StepSize size_;
  Tensor x_bcd_, dy_bcd_;
  std::vector<Parameter*> parameters_;
  std::function<Tensor(const Arg& x_bcd)> forward_;  // holds the module
};

}  // namespace ricci::apps
