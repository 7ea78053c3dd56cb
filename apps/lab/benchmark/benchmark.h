// Costs of mixers against the length of sequences: time, memory and work of a training step. With scales the benchmark measures one layer
// instead (Subramanian et al. 2020, figure 2): at scale s the layer has a position for every s tokens, and the costs are the time of its
// forward and the memory that it keeps for the backward.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/report/report.h"
#include "apps/lab/report/statistics.h"
#include "core/fields.h"
#include "models/mixers/mixers.h"

namespace ricci::apps {

// ---- A step: forward and backward of a stack of blocks around a mixer, or only of the mixer, without embedding and vocabulary.

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
  void forward();        // the forward only, without a tape
  int64_t kept_bytes();  // that a forward keeps for the backward, weights and the input left out
  const std::vector<Parameter*>& parameters() const { return parameters_; }

 private:
  StepSize size_;
  Tensor x_bcd_, dy_bcd_;
  std::vector<Parameter*> parameters_;
  std::function<Tensor(const Arg& x_bcd)> forward_;  // holds the module
};

// ---- Measurements

struct BenchOptions {
  std::vector<MixerKind> mixers;
  std::vector<int64_t> lengths = {128, 256, 512, 1024, 2048};
  std::vector<int64_t> scales = {};  // if given, one pre-norm layer as in GPT-2 is measured at these, else post-norm blocks
  int64_t tokens = 2048;
  std::optional<int64_t> sequences = {};  // by default the sequences that hold `tokens`
  int64_t rounds = 5;
  StepSize size = {};  // without sequences and positions

  bool is_layer() const { return !scales.empty(); }
};
inline void visit_fields(BenchOptions& o, const Fields& field) {
  field("lengths", o.lengths, "lengths of the sequences: 128,512").at_least(1);
  field("tokens", o.tokens, "tokens of a step, the same at every length").at_least(1);
  field("sequences", o.sequences, "sequences of a step, in place of --tokens").at_least(1);
  field("width", o.size.width, "width of the blocks").at_least(1);
  field("layers", o.size.layers, "post-norm blocks with a relu").at_least(1);
  field("heads", o.size.heads, "heads of mixers that have some").at_least(1);
  field("ff", o.size.feed_forward, "width of the feed-forward layers; the width if not given").at_least(1);
  field("alone", o.size.alone, "one mixer with its maps, in place of blocks");
  field("rounds", o.rounds, "steps of each mixer and length").at_least(1);
}

// A mixer at a length. A layer has the seconds of a forward, and the bytes that it keeps for the backward.
struct MixerRow {
  std::string name;  // the mixer, or the scale of a layer: "4x"
  int64_t scale = 1, length = 0, sequences = 0, parameters = 0;
  Spread seconds = {};                        // a step takes them
  double flops = 0;                           // products, attention and shift-and-sum of a step
  int64_t bytes = 0;                          // most that tensors held at one time
  std::optional<int64_t> process_bytes = {};  // held by a process on the CPU that runs only this step, by a dry run

  int64_t positions() const { return length / scale; }
};

// Rows by length, then by mixer and scale. At each length all take turns, a step each per round, because background load then affects all
// equally. Lengths shorter than a cell of a scale have no row. A bar on stderr shows how far it is. Errors: as for MixerStep; too little
// memory; heads that do not divide the width; a length that does not divide the tokens.
std::vector<MixerRow> measure(const BenchOptions& options);

Report report_of(const BenchOptions& options, const std::vector<MixerRow>& rows);

}  // namespace ricci::apps
