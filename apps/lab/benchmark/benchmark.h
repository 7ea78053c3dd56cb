// The time, memory and work of a training step, by mixer and sequence length. A layer of a multi-scale model with L tokens at scale s costs
// the same as L / s positions.
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

// ---- A step: forward and backward of a stack of blocks, or only of a mixer, without embedding and vocabulary

struct StepSize {
  int64_t width = 256, layers = 2, heads = 4;
  std::optional<int64_t> feed_forward = {};  // by default the width
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
  StepSize size = {};  // without sequences and positions
};
inline void visit_fields(BenchOptions& o, const Fields& field) {
  field("lengths", o.lengths, "sequence lengths: 128,512").at_least(1);
  field("tokens", o.tokens, "tokens of a step, at every length").at_least(1);
  field("sequences", o.sequences, "sequences of a step; replaces --tokens").at_least(1);
  field("width", o.size.width, "width of the blocks").at_least(1);
  field("layers", o.size.layers, "post-norm blocks with a relu").at_least(1);
  field("heads", o.size.heads, "heads, for mixers with heads").at_least(1);
  field("ff", o.size.feed_forward, "feed-forward width; by default the width").at_least(1);
  field("alone", o.size.alone, "measure one mixer with its projections instead of blocks");
  field("rounds", o.rounds, "steps of each mixer and length").at_least(1);
}

// A mixer at a length.
struct MixerRow {
  std::string name;
  int64_t positions = 0, sequences = 0, parameters = 0;
  Spread seconds = {};                        // per step
  double flops = 0;                           // in products, attention and shift-and-sum
  int64_t bytes = 0;                          // peak of tensors
  std::optional<int64_t> process_bytes = {};  // for a CPU process with only this step, by a dry run
};

// Rows by length, then by mixer. At each length the mixers take turns, so background load affects all equally. Errors: as for MixerStep;
// the memory is too small; the heads do not divide the width; a length does not divide the tokens.
std::vector<MixerRow> measure(const BenchOptions& options);

Report report_of(const BenchOptions& options, const std::vector<MixerRow>& rows);

}  // namespace ricci::apps
