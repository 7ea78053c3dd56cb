// The time, memory and work of a training step, by mixer and sequence length. At scale s, a layer of a multi-scale model with L tokens
// costs the same as a layer with L / s positions.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/report/report.h"
#include "core/fields.h"
#include "models/mixers/mixers.h"

namespace ricci::apps {

// ---- A step: the forward and backward pass of a stack of blocks, or of only a mixer, without the embedding or the output layer

struct StepSize {
  int64_t width = 256, layers = 2, heads = 4;
  std::optional<int64_t> feed_forward = {};  // by default equal to the width
  int64_t sequences = 1, positions = 128;
  bool alone = false;  // one mixer instead of blocks; its input has a gradient, as in a model
  Dtype dtype = Dtype::f32;
  Device device = Device::cpu;
};

struct MixerStep {
  std::function<void()> run;  // returns when the device is done
  std::vector<Parameter*> parameters;
};
// Error: the size does not fit the mixer.
MixerStep make_step(MixerKind mixer, const StepSize& size);

// ---- Measurements
struct BenchOptions {
  std::vector<MixerKind> mixers;
  std::vector<int64_t> lengths = {128, 256, 512, 1024, 2048};
  int64_t tokens = 2048;
  std::optional<int64_t> sequences = {};  // by default `tokens` / length
  int64_t rounds = 5;
  StepSize size = {};  // sequences and positions are unused
};
inline void visit_fields(BenchOptions& o, const Fields& field) {
  field("lengths", o.lengths, "sequence lengths, such as 128,512").at_least(1);
  field("tokens", o.tokens, "tokens per step, at every length").at_least(1);
  field("sequences", o.sequences, "sequences per step; replaces --tokens").at_least(1);
  field("width", o.size.width, "width of the blocks").at_least(1);
  field("layers", o.size.layers, "number of post-norm blocks with ReLU").at_least(1);
  field("heads", o.size.heads, "number of heads, for mixers that have heads").at_least(1);
  field("ff", o.size.feed_forward, "feed-forward width; by default equal to --width").at_least(1);
  field("alone", o.size.alone, "measure one mixer with its projections instead of blocks");
  field("rounds", o.rounds, "timed steps of each mixer at each length").at_least(1);
}

// The measurements of a mixer at one length.
struct MixerRow {
  std::string name;
  int64_t positions = 0, sequences = 0, parameters = 0;
  Spread seconds = {};                        // per step
  double flops = 0;                           // in products, attention and shift-and-sum
  int64_t bytes = 0;                          // peak memory of tensors
  std::optional<int64_t> process_bytes = {};  // peak of a CPU process that runs only this step, estimated by a dry run
};

// Measures the mixers. Rows are ordered by length, then by mixer. At each length, the mixers alternate, so background load affects all
// equally. Errors: as for make_step; the memory is too small; the heads do not divide the width; a length does not divide the tokens.
std::vector<MixerRow> measure(const BenchOptions& options);

Report report_of(const BenchOptions& options, const std::vector<MixerRow>& rows);

}  // namespace ricci::apps
